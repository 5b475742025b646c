"""Text as an attacker would write it, put into every column that holds outside text, each with its own tag.

The verbs refuse much of it at the door; here it stands in the tables as if every door had failed, so that the
pages are judged by themselves. A column that is neither `SHOWN` nor of a closed vocabulary fails a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson
import psycopg
from django.apps import apps
from django.db import models
from psycopg import sql

from tests.factories.world import World

APPS: Final = ("tenancy", "traces", "approvals", "budgets", "orchestrator")
MARKUP, TEMPLATE = "<script>alert(1)</script>", "{{ 7|add:7 }}"
BITS: Final = (
    "<b onclick=x>", "'\"", "a\u202egnp.exe", "\x1b[31mred", "pass\u200bword", "a" + "\u0301" * 9, MARKUP,
    TEMPLATE, "\ufefffirst", "p\u0430ypal", "\u2066inner\u2069",
)  # fmt: skip
BLANKS, WORD = " " * 10_000, "W" * 400
# What people, programs, models and tools may write, as the tables call it.
SHOWN: Final = (
    "tenancy.Tenant.name", "tenancy.Person.name", "tenancy.Principal.label", "tenancy.ApiKey.label",
    "tenancy.AuditEntry.object", "tenancy.AuditEntry.before", "tenancy.AuditEntry.after",
    "tenancy.AuditEntry.reason", "tenancy.Queue.description", "tenancy.Webhook.name",
    "tenancy.Webhook.url", "tenancy.Webhook.off_why",
    "tenancy.WebhookAttempt.error", "tenancy.Secret.origin", "budgets.TenantCeiling.reason",
    "budgets.Price.provider", "budgets.Price.model", "budgets.Price.reason", "budgets.RateLimit.reason",
    "approvals.Decision.reason", "approvals.Handling.text", "approvals.UndoWindow.reason",
    "approvals.Deferral.ended_because", "orchestrator.WorkflowVersion.title",
    "orchestrator.CorpusDocument.title", "orchestrator.CorpusDocument.reason",
    "orchestrator.CorpusPassage.text", "orchestrator.PolicyProposal.reason", "orchestrator.Run.title",
    "orchestrator.Run.reason", "orchestrator.ToolServer.address", "orchestrator.ToolServer.named",
    "orchestrator.ToolServer.fault", "orchestrator.ServerTool.why", "orchestrator.PrivatePlaces.reason",
    "orchestrator.Outside.reason", "orchestrator.EmergencyStop.reason", "orchestrator.SavedView.name",
    "orchestrator.WorkspaceRevision.summary", "orchestrator.ReviewItem.subject",
    "orchestrator.ReviewItem.reason", "orchestrator.ReviewWord.note", "orchestrator.ToolProposal.reason",
    "orchestrator.ToolProposal.settled_reason", "orchestrator.ToolProposal.body",
    "orchestrator.ToolProposal.weaker", "orchestrator.PolicyVersion.reason",
    "tenancy.WebhookKeeping.reason", "tenancy.BrowserSession.browser", "tenancy.TenantSession.browser",
    "tenancy.SignInRulesVersion.reason", "tenancy.KnownDevice.browser", "tenancy.FailedSignIn.browser",
)  # fmt: skip
# What only Interlock writes, what a pattern or a list holds to names, and what is read through a model that
# holds it to a shape: each column by its own name, for the same word may hold outside text elsewhere.
NAMES: Final = """
    tenancy.Tenant: slug time_zone tier
    tenancy.PlatformEntry: verb object
    tenancy.PlatformAnswer: key path answer
    tenancy.Person: password email
    tenancy.Membership: role max_risk
    tenancy.Principal: kind
    tenancy.ApiKey: role runs
    tenancy.PersonTie: kind
    tenancy.AuditEntry: verb
    tenancy.BrowserSession: data
    tenancy.FailedSignIn: step source
    tenancy.IdempotencyKey: key path answer
    tenancy.Secret: name
    tenancy.Queue: name
    tenancy.Webhook: origin
    tenancy.WebhookMessage: kind
    tenancy.Notice: kind subject data
    budgets.DriftFlag: workflow metric
    tenancy.WebhookDelivery: state
    traces.Event: kind actor
    traces.Record: source outcome target
    budgets.Account: kind currency
    budgets.Line: dimension
    budgets.Entry: effect_id cause amounts price_version
    budgets.Alert: kind
    budgets.RunFigures: workflow terminal_code
    budgets.DaySpend: workflow kind name
    approvals.Request: call_id kind status packet_digest action_digest tool queue risk outcome
    approvals.Request: granted_action answer_schema
    approvals.Decision: role kind packet_digest previous digest
    approvals.GrantUse: effect_id action_digest
    approvals.Handling: kind
    approvals.Deferral: kind packet_digest fate
    orchestrator.WorkflowVersion: slug digest
    orchestrator.BoundaryVersion: slug digest
    orchestrator.ToolVersion: slug digest
    orchestrator.PromptVersion: slug digest
    orchestrator.RegistryVersion: digest tools
    orchestrator.PinSet: digest
    orchestrator.CircuitRow: kind subject state
    orchestrator.ConflictClaim: key effect
    orchestrator.Expectation: workflow graph lived expected
    orchestrator.ToolProposal: kind tool tag status
    orchestrator.MemoryProposal: key kind sha256 trust evidence
    orchestrator.MemoryVerdict: verdict
    orchestrator.Outside: kind body
    orchestrator.MailDraft: key sha256
    orchestrator.CorpusDocument: corpus name language sha256
    orchestrator.PolicyVersion: digest
    orchestrator.PolicyProposal: digest status
    orchestrator.ReviewItem: key queue severity sha256 evidence
    orchestrator.ReviewWord: kind finding
    orchestrator.Run: workflow mode status position terminal_code result lease_owner manifest_digest retry_key
    orchestrator.ManifestRow: digest pins_digest budget
    orchestrator.RunSignal: kind
    orchestrator.Intent: effect kind tool tool_digest argument_digest key
    orchestrator.Dispatch: id verdict
    orchestrator.ToolServer: slug kind origin secret secret_header protocol
    orchestrator.ToolDefinition: tool digest
    orchestrator.ServerTool: tool name state seen admitted
    orchestrator.EmergencyStop: scope target risk
    orchestrator.Task: workflow goal_digest mode idempotency_key asked_digest
    orchestrator.SavedView: query
    orchestrator.FileContent: digest
    orchestrator.WorkspaceRevision: key cause digest tree
    budgets.Price: price
    orchestrator.PrivatePlaces: places
    orchestrator.ModelTurn: stage
"""
CLOSED: Final = frozenset(
    f"{model}.{column}"
    for model, _, columns in (line.strip().partition(": ") for line in NAMES.strip().splitlines())
    for column in columns.split()
)
# Words that no page of this house shows: letters that could not be sent, what programs read alone, and the
# ends of what goes on in it.
UNSEEN: Final = frozenset(
    {
        "budgets.AlertMail.error", "orchestrator.CircuitRow.reason", "orchestrator.MemoryProposal.text",
        "orchestrator.MemoryVerdict.reason", "orchestrator.PolicyProposal.settled_reason",
        "tenancy.WebhookMessage.subject", "tenancy.Secret.renews_at", "approvals.Request.ended_because",
        "approvals.Deferral.reason",
        "orchestrator.CorpusDocument.text", "orchestrator.CorpusPassage.heading",
        "orchestrator.MailDraft.body", "orchestrator.RunSignal.payload", "orchestrator.Task.metadata",
        "tenancy.NoticeMail.error", "tenancy.Tenant.suspended_reason",
        # The platform's own, which are no tenant's (test_platform.py).
        "tenancy.PlatformKey.label", "tenancy.PlatformEntry.before", "tenancy.PlatformEntry.after",
        "tenancy.PlatformEntry.reason",
    }
)  # fmt: skip
LISTS: Final = ("orchestrator.ToolProposal.weaker",)
CAME: Final = (
    "tenancy_webhook SET off_at = now()",
    "orchestrator_workspacerevision SET cause = 'changed'",
    "tenancy_webhookattempt SET status = CASE number WHEN 2 THEN 500 END",
    "orchestrator_toolproposal SET kind = 'declare'",
)


def columns() -> Iterator[tuple[str, Any]]:
    """Every column of text or JSON in the tables of the house, by its name "app.Model.column"."""
    for model in apps.get_models():
        if model._meta.app_label in APPS:
            for field in model._meta.fields:
                if isinstance(field, models.CharField | models.TextField | models.JSONField):
                    yield f"{model._meta.label}.{field.name}", field


def tag(name: str) -> str:
    """What the page is searched for."""
    return f"F{SHOWN.index(name):02d}F"


def hostile(mark: str, longest: int | None = None) -> str:
    """The whole corpus after a mark; where there is little room, as much of it as fits, and a long word."""
    if longest is None:
        return " ".join((mark, *BITS, BLANKS, WORD, "end"))
    found = mark
    for bit in BITS:
        if len(found) + len(bit) < longest - 20:
            found += " " + bit
    return (found + " " + "W" * longest)[:longest]


def taint(superuser: psycopg.Connection[Any], world: World) -> None:
    """Write the corpus over every column of `SHOWN` in this tenant's rows, guards or no guards."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        for name in SHOWN:
            _write(superuser, world, name)
        # A reason is shown where something came of it.
        for change in CAME:
            superuser.execute(f"UPDATE {change} WHERE tenant_id = %s", (world.id,))
        # Whoever belongs to two tenants has both names above every page; theirs comes second.
        superuser.execute(
            "UPDATE tenancy_tenant SET name = %s WHERE id = %s",
            (hostile("Z-second", 200), world.people.other_tenant.id),
        )
        _taint_packets(superuser, world)


def _write(superuser: psycopg.Connection[Any], world: World, name: str) -> None:
    label, _, column = name.rpartition(".")
    model = apps.get_model(label)
    field = model._meta.get_field(column)
    text = hostile(tag(name), getattr(field, "max_length", None))
    body: Any = [text] if name in LISTS else {"k": text}
    value = sql.Literal(orjson.dumps(body).decode() if isinstance(field, models.JSONField) else text)
    superuser.execute(
        sql.SQL("UPDATE {} SET {} = {} WHERE {} = {}").format(
            sql.Identifier(model._meta.db_table), sql.Identifier(column), value, *_whose(label, world)
        )
    )


def _whose(label: str, world: World) -> tuple[sql.Composable, sql.Composable]:
    if label == "tenancy.Tenant":
        return sql.Identifier("id"), sql.Literal(world.id)
    if label == "tenancy.Person":
        return sql.Identifier("id"), sql.Literal(world.people.admin.person.id)
    if label in ("tenancy.BrowserSession", "tenancy.KnownDevice", "tenancy.FailedSignIn"):
        return sql.Identifier("person_id"), sql.Literal(world.people.admin.person.id)
    return sql.Identifier("tenant_id"), sql.Literal(world.id)


def _taint_packets(superuser: psycopg.Connection[Any], world: World) -> None:
    found = superuser.execute(
        "SELECT id, packet FROM approvals_request WHERE tenant_id = %s", (world.id,)
    ).fetchall()
    for request, body in found:
        packet = orjson.loads(bytes(body))
        packet |= {key: hostile(f"P-{key}") for key in ("goal", "step", "why", "trigger") if key in packet}
        if packet["tool"]:
            told = ("description", "effect", "blast_radius", "rollback")
            packet["tool"] |= {key: hostile(f"P-{key}", 600) for key in told}
        for fact in packet["evidence"]:
            fact["value"] = hostile("P-value")
        if packet["arguments"]:
            arguments = orjson.loads(packet["arguments"]) | {"reason": hostile("P-argument")}
            packet["arguments"] = orjson.dumps(arguments).decode()
        if packet["kind"] == "action":
            former = {**orjson.loads(packet["arguments"]), "reason": hostile("P-former")}
            packet["previous_arguments"] = orjson.dumps(former).decode()
            words = {"words": [hostile("P-words")], "answer": hostile("P-answer")}
            packet["proposal"] = {
                "number": 2, "most": 3, "returnable": True, "previous": str(request), **words,
            }  # fmt: skip
        superuser.execute(
            "UPDATE approvals_request SET packet = %s WHERE id = %s", (orjson.dumps(packet), request)
        )
