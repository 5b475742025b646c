"""Every address of the house and what it asks for. An address that is not here fails the sweep."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from django.urls import URLPattern, URLResolver, get_resolver

from orchestrator import bundled_content
from orchestrator.core.policy.rules import Policy
from orchestrator.core.tools.remote_definition import Listing, parse_listed_tool
from orchestrator.knowledge.actions.corpora import NewDocument, put_document
from orchestrator.knowledge.actions.workspace import hand_in
from orchestrator.knowledge.models.memory import MemoryProposal
from orchestrator.llm.actions.tenant_models import set_models
from orchestrator.notifications.actions.webhooks import try_webhook
from orchestrator.notifications.gateways.webhook_sender import secret_of
from orchestrator.notifications.queries import place_of_secret
from orchestrator.outbound.actions import TenantCircuits, circuit_id
from orchestrator.policies.actions.policy_versions import ChangeAuthor, change_policy
from orchestrator.publishing.actions.versions import publish_boundary, publish_tools, publish_workflow
from orchestrator.reviews.models import ReviewItem
from orchestrator.tools.actions.tool_servers import note_listing
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.models.tool_server import ToolServer
from orchestrator.tools.queries.tools import tool_now
from tenancy.actions import create_key
from tenancy.actions.queues import add_queue
from tenancy.core.event_kinds import BUDGET_ALERT
from tenancy.core.roles import Role, Scope
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Webhook
from tenancy.secret_store import keep_secret, seal_secret
from tests.doors.api.bodies import OFFERED
from tests.factories.world import World, company_at

METHODS = ("get", "post", "put", "patch", "delete")
# Who may: the scope a key must hold; None where no key is asked for.
DOORS: dict[tuple[str, str], Scope | None] = {
    ("get", "livez"): None,
    ("get", "metrics"): None,
    ("get", "readyz"): None,
    ("get", "api/v1"): None,
    ("get", "api/schema"): Scope.READ,
    ("post", "api/v1/tasks"): Scope.SUBMIT,
    ("get", "api/v1/runs"): Scope.READ,
    ("get", "api/v1/runs/{run_id}"): Scope.READ,
    ("post", "api/v1/runs/{run_id}/cancel"): Scope.SUBMIT,
    ("post", "api/v1/runs/{run_id}/pause"): Scope.OPERATE,
    ("post", "api/v1/runs/{run_id}/resume"): Scope.OPERATE,
    ("get", "api/v1/runs/{run_id}/events"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/result"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/plan"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/trace"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/files"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/files/content/{file}"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/files/archive"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/files/diff"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/stream"): Scope.READ,
    ("post", "api/v1/runs/{run_id}/replay"): Scope.READ,
    ("get", "api/v1/runs/{run_id}/checkpoints"): Scope.READ,
    # It takes SUBMIT as well, which every role that operates has.
    ("post", "api/v1/runs/{run_id}/retry"): Scope.OPERATE,
    ("get", "api/v1/runs/{run_id}/effects"): Scope.READ,
    ("post", "api/v1/runs/{run_id}/effects/reconcile"): Scope.DECIDE,
    ("post", "api/v1/runs/{run_id}/effects/look-up"): Scope.DECIDE,
    ("get", "api/v1/reviews"): Scope.READ,
    ("get", "api/v1/reviews/{review_id}"): Scope.READ,
    ("post", "api/v1/reviews/{review_id}/take"): Scope.DECIDE,
    ("post", "api/v1/reviews/{review_id}/release"): Scope.DECIDE,
    ("post", "api/v1/reviews/{review_id}/answer"): Scope.DECIDE,
    ("get", "api/v1/queues"): Scope.INSPECT,
    ("post", "api/v1/queues"): Scope.ADMIN,
    ("get", "api/v1/queues/{queue}"): Scope.INSPECT,
    ("patch", "api/v1/queues/{queue}"): Scope.ADMIN,
    ("post", "api/v1/queues/{queue}/close"): Scope.ADMIN,
    ("post", "api/v1/queues/{queue}/reopen"): Scope.ADMIN,
    ("get", "api/v1/memory"): Scope.READ,
    ("post", "api/v1/memory/{memory_id}/keep"): Scope.ADMIN,
    ("post", "api/v1/memory/{memory_id}/refuse"): Scope.ADMIN,
    ("post", "api/v1/memory/{memory_id}/quarantine"): Scope.ADMIN,
    ("get", "api/v1/workflows"): Scope.READ,
    ("post", "api/v1/workflows"): Scope.ADMIN,
    ("get", "api/v1/workflows/{slug}"): Scope.READ,
    ("get", "api/v1/workflows/{slug}/versions"): Scope.READ,
    ("post", "api/v1/workflows/{slug}/versions/{number}/retire"): Scope.ADMIN,
    ("get", "api/v1/boundaries"): Scope.READ,
    ("post", "api/v1/boundaries"): Scope.ADMIN,
    ("get", "api/v1/boundaries/{slug}"): Scope.READ,
    ("get", "api/v1/boundaries/{slug}/versions"): Scope.READ,
    ("post", "api/v1/boundaries/{slug}/tools"): Scope.ADMIN,
    ("post", "api/v1/boundaries/{slug}/versions/{number}/retire"): Scope.ADMIN,
    ("get", "api/v1/tools"): Scope.READ,
    ("get", "api/v1/tools/{name}"): Scope.READ,
    ("patch", "api/v1/tools/{name}"): Scope.ADMIN,
    ("get", "api/v1/mcp-servers"): Scope.INSPECT,
    ("post", "api/v1/mcp-servers"): Scope.ADMIN,
    ("get", "api/v1/mcp-servers/{server}"): Scope.INSPECT,
    ("post", "api/v1/mcp-servers/{server}/refresh"): Scope.ADMIN,
    ("post", "api/v1/mcp-servers/{server}/admit"): Scope.ADMIN,
    ("post", "api/v1/mcp-servers/{server}/quarantine"): Scope.ADMIN,
    ("post", "api/v1/mcp-servers/{server}/remove"): Scope.ADMIN,
    ("post", "api/v1/http-tools"): Scope.ADMIN,
    ("get", "api/v1/private-places"): Scope.INSPECT,
    ("put", "api/v1/private-places"): Scope.ADMIN,
    ("get", "api/v1/policy"): Scope.READ,
    ("put", "api/v1/policy"): Scope.ADMIN,
    ("get", "api/v1/policy/versions"): Scope.READ,
    ("get", "api/v1/change-requests"): Scope.INSPECT,
    ("post", "api/v1/change-requests/{tool_proposal_id}/agree"): Scope.ADMIN,
    ("post", "api/v1/change-requests/{tool_proposal_id}/drop"): Scope.ADMIN,
    ("post", "api/v1/policy/proposals/{proposal_id}/agree"): Scope.ADMIN,
    ("post", "api/v1/policy/proposals/{proposal_id}/drop"): Scope.ADMIN,
    ("get", "api/v1/secrets"): Scope.ADMIN,
    ("post", "api/v1/secrets"): Scope.ADMIN,
    ("post", "api/v1/secrets/{secret}/revoke"): Scope.ADMIN,
    ("get", "api/v1/destinations/web"): Scope.READ,
    ("put", "api/v1/destinations/web"): Scope.ADMIN,
    ("get", "api/v1/destinations/databases"): Scope.INSPECT,
    ("put", "api/v1/destinations/databases"): Scope.ADMIN,
    ("get", "api/v1/destinations/mail"): Scope.INSPECT,
    ("put", "api/v1/destinations/mail"): Scope.ADMIN,
    ("get", "api/v1/model-profiles"): Scope.INSPECT,
    ("post", "api/v1/model-profiles"): Scope.ADMIN,
    ("get", "api/v1/model-profiles/{model}"): Scope.INSPECT,
    ("patch", "api/v1/model-profiles/{model}"): Scope.ADMIN,
    ("post", "api/v1/model-profiles/{model}/remove"): Scope.ADMIN,
    ("get", "api/v1/corpora"): Scope.READ,
    ("post", "api/v1/corpora"): Scope.ADMIN,
    ("get", "api/v1/corpora/{corpus}"): Scope.READ,
    ("get", "api/v1/corpora/{corpus}/documents/{document}"): Scope.READ,
    ("post", "api/v1/corpora/{corpus}/documents/{document}/remove"): Scope.ADMIN,
    ("get", "api/v1/circuits"): Scope.READ,
    ("post", "api/v1/circuits/{circuit_id}/reset"): Scope.ADMIN,
    ("get", "api/v1/webhooks/retention"): Scope.ADMIN,
    ("put", "api/v1/webhooks/retention"): Scope.ADMIN,
    ("get", "api/v1/webhooks"): Scope.ADMIN,
    ("post", "api/v1/webhooks"): Scope.ADMIN,
    ("get", "api/v1/webhooks/{webhook_id}"): Scope.ADMIN,
    ("post", "api/v1/webhooks/{webhook_id}/rotate"): Scope.ADMIN,
    ("post", "api/v1/webhooks/{webhook_id}/on"): Scope.ADMIN,
    ("post", "api/v1/webhooks/{webhook_id}/test"): Scope.ADMIN,
    ("get", "api/v1/webhooks/{webhook_id}/deliveries"): Scope.ADMIN,
    ("get", "api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}"): Scope.ADMIN,
    ("post", "api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay"): Scope.ADMIN,
    ("delete", "api/v1/webhooks/{webhook_id}"): Scope.ADMIN,
    ("get", "api/v1/sign-in-rules"): Scope.INSPECT,
    ("put", "api/v1/sign-in-rules"): Scope.ADMIN,
    ("get", "api/v1/ceilings"): Scope.READ,
    ("put", "api/v1/ceilings"): Scope.ADMIN,
    ("get", "api/v1/members"): Scope.ADMIN,
    ("post", "api/v1/members"): Scope.ADMIN,
    ("get", "api/v1/members/{person_id}"): Scope.ADMIN,
    ("post", "api/v1/members/{person_id}/link"): Scope.ADMIN,
    ("post", "api/v1/members/{person_id}/confirm"): Scope.ADMIN,
    ("post", "api/v1/members/{person_id}/roles"): Scope.ADMIN,
    ("get", "api/v1/members/{person_id}/roles/{role}"): Scope.ADMIN,
    ("put", "api/v1/members/{person_id}/roles/{role}"): Scope.ADMIN,
    ("post", "api/v1/members/{person_id}/roles/{role}/remove"): Scope.ADMIN,
    ("post", "api/v1/members/{person_id}/deactivate"): Scope.ADMIN,
    ("get", "api/v1/keys"): Scope.INSPECT,
    ("post", "api/v1/keys"): Scope.ADMIN,
    ("get", "api/v1/keys/{key_id}"): Scope.INSPECT,
    ("post", "api/v1/keys/{key_id}/rotate"): Scope.ADMIN,
    ("post", "api/v1/keys/{key_id}/revoke"): Scope.ADMIN,
    ("get", "api/v1/rates"): Scope.READ,
    ("put", "api/v1/rates"): Scope.ADMIN,
    ("get", "api/v1/prices"): Scope.READ,
    ("post", "api/v1/prices"): Scope.ADMIN,
    ("post", "api/v1/prices/corrections"): Scope.ADMIN,
    ("get", "api/v1/budgets"): Scope.READ,
    ("get", "api/v1/budgets/figures"): Scope.READ,
    ("get", "api/v1/approvals"): Scope.READ,
    ("get", "api/v1/approvals/{request_id}"): Scope.READ,
    ("post", "api/v1/approvals/{request_id}/decisions"): Scope.READ,
    ("post", "api/v1/approvals/decisions"): Scope.READ,
    ("get", "api/v1/approvals/undo-window"): Scope.READ,
    ("put", "api/v1/approvals/undo-window"): Scope.ADMIN,
    ("post", "api/v1/approvals/{request_id}/edit-preview"): Scope.READ,
    ("post", "api/v1/approvals/{request_id}/undo"): Scope.READ,
    ("post", "api/v1/approvals/{request_id}/reveal"): Scope.REVEAL,
    ("get", "api/v1/approvals/{request_id}/assignment"): Scope.READ,
    ("post", "api/v1/approvals/{request_id}/assignment"): Scope.READ,
}
ONLY_THEIRS = {
    "slug": "theirs-alone", "name": "theirs.alone", "number": "1", "server": "theirs_alone",
    "corpus": "theirs_alone", "document": "theirs-alone", "secret": "theirs-alone",
    "model": "theirs-alone", "file": "theirs-alone", "role": "auditor", "queue": "theirs-alone",
}  # fmt: skip
NOBODYS = {
    "slug": "nobodys-own1", "name": "nobodys.own1", "number": "1", "server": "nobodys_own1",
    "corpus": "nobodys_own1", "document": "nobodys-own1", "secret": "nobodys-own1",
    "model": "nobodys-own1", "file": "nobodys-own1", "role": "auditor", "queue": "nobodys-own1",
}  # fmt: skip
OUTSIDE = ("livez", "readyz", "metrics")


def addresses() -> set[tuple[str, str]]:
    """What the house really answers programs to: (method, address), ids in braces.

    Pages have a sweep of their own (tests/doors/pages/test_every_page.py).
    """
    found = _leaves(get_resolver().url_patterns, "")
    return {(method, route) for method, route in found if route.startswith("api/") or route in OUTSIDE}


def _leaves(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = before + str(pattern.pattern).replace("<str:", "{").replace("<path:", "{").replace(">", "}")
        if isinstance(pattern, URLResolver):
            yield from _leaves(pattern.url_patterns, route)
            continue
        view = getattr(pattern.callback, "view_class", None)
        for method in METHODS if view is not None else ("get",):
            if view is None or hasattr(view, method):
                yield method, route


def things_of(world: World) -> dict[str, str]:
    """One real thing of each kind that an address can name, all in this tenant alone."""
    with company_at("http://127.0.0.1:9"):
        # Its tools have an address; the run asks which order is meant before it calls any.
        run: UUID = world.submit("support-refund", "Refund something")
        world.drive(run)
    (request,) = world.open_requests(run)
    loop, shipped = (
        bundled_content.load_bundled_workflows()["tool-loop"],
        [tool.spec for tool in shipped_tools().values()],
    )
    slug, name = ONLY_THEIRS["slug"], ONLY_THEIRS["name"]
    with tenant_transaction(world.id):
        hand_in(world.id, run, {ONLY_THEIRS["file"]: b"Theirs alone."})
        publish_tools(world.id, (*shipped, shipped[0].evolve(name=name)), by=None)
        publish_boundary(
            world.id, bundled_content.load_bundled_boundaries()[loop.boundary].evolve(slug=slug), by=None
        )
        publish_workflow(world.id, loop.evolve(slug=slug), by=None)
        server = ONLY_THEIRS["server"]
        ToolServer.objects.create(
            tenant_id=world.id, slug=server, kind="http", address="https://tools.example/mcp",
            origin="https://tools.example", created_at=database_now(),
        )  # fmt: skip
    note_listing(world.id, server, Listing(tools=(parse_listed_tool(OFFERED),)), by=None)
    document = NewDocument(
        corpus=ONLY_THEIRS["corpus"], name=ONLY_THEIRS["document"], title="Theirs", text="Theirs alone."
    )
    put_document(world.id, document, by=None)
    add_queue(world.id, ONLY_THEIRS["queue"], "Theirs", by=None)
    keep_secret(world.id, ONLY_THEIRS["secret"], "s", origin="https://theirs.example", by=None)
    keep_secret(world.id, "theirs-openai", "s", origin="https://api.openai.com", by=None)
    own = {
        "name": ONLY_THEIRS["model"], "provider": "openai", "model": "large", "roles": ["executor"],
        "secret": "theirs-openai",
    }  # fmt: skip
    set_models(world.id, (own,), expected=None, by=None, reason="Theirs.")
    TenantCircuits(world.id).trip("tool", name, "timeout")
    circuit = circuit_id(world.id, "tool", name)
    who = ChangeAuthor(principal=fresh_id(), owner=fresh_id())
    waiting = change_policy(world.id, Policy(), expected=None, who=who, reason="Less of it").proposal
    assert waiting is not None
    webhook = some_webhook(world.id)
    delivery = try_webhook(world.id, webhook, by=None)
    return {
        "run_id": str(run), "request_id": str(request.id), "circuit_id": str(circuit),
        "memory_id": str(some_memory(world.id, run)), "proposal_id": str(waiting.id),
        "tool_proposal_id": str(some_proposal(world.id, "clock.now")),
        "webhook_id": str(webhook), "delivery_id": str(delivery),
        "review_id": str(some_review(world.id, run)),
        "person_id": str(world.people.auditor.person.id),
        "key_id": str(create_key(world.id, Role.CLIENT, label="theirs").key.id),
        **ONLY_THEIRS,
    }  # fmt: skip


def some_memory(tenant_id: UUID, run: UUID) -> UUID:
    """Something that a run proposed to remember."""
    with tenant_transaction(tenant_id):
        at = database_now()
        return MemoryProposal.objects.create(
            tenant_id=tenant_id, run_id=run, key="k", kind="semantic", text="So it is.", sha256="0" * 64,
            evidence=[], at=at, expires_at=at + timedelta(days=1),
        ).id  # fmt: skip


def some_proposal(tenant_id: UUID, tool: str) -> UUID:
    """A change that guards a tool less, and waits for a second person."""
    asked = {"kind": "change", "tool": tool, "body": {"change": {"rate_per_minute": 9}}, "weaker": ["It is."]}
    with tenant_transaction(tenant_id):
        return ToolProposal.objects.create(
            tenant_id=tenant_id, tag=tool_now(tenant_id, tool).tag, reason="Too slow", by=fresh_id(),
            owner=fresh_id(), at=database_now(), **asked,
        ).id  # fmt: skip


def some_review(tenant_id: UUID, run: UUID) -> UUID:
    """Something that a run asks people to look at."""
    asked = {"queue": "support", "severity": "high", "subject": "A claim", "reason": "The figures differ."}
    with tenant_transaction(tenant_id):
        return ReviewItem.objects.create(
            tenant_id=tenant_id, run_id=run, key="k", sha256="0" * 64, evidence=[], at=database_now(), **asked
        ).id  # fmt: skip


def some_webhook(tenant_id: UUID) -> UUID:
    """An endpoint at an address that is never reached: whatever is sent to it fails at once."""
    made = fresh_id()
    with tenant_transaction(tenant_id):
        Webhook.objects.create(
            id=made, tenant_id=tenant_id, name="theirs", url="https://127.0.0.1/hook", events=[BUDGET_ALERT],
            origin="https://127.0.0.1", created_at=database_now(),
            sealed=seal_secret(tenant_id, place_of_secret(made), secret_of(bytes(32))),
        )  # fmt: skip
    return made
