"""Every form of the console as each role: who lacks its scope is refused, and nothing changes (R-SEC-2)."""

from urllib.parse import parse_qsl

import pytest

from tenancy.core.roles import Role, Scope, scopes_of
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.doors.pages.test_every_page import EVERY, address, belongings, nothing
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves
from traces.models import Event

pytestmark = pytest.mark.slow

# Who may send a form to an address, with what the form must say: its scope; None: every member. What is not
# here takes none. Whose word on a request counts is settled by authority, not by scope (R-APPR-4).
WRITES: dict[str, Scope | None] = {
    "approvals/<uuid:request_id>": Scope.READ,
    "approvals/<uuid:request_id>/preview": Scope.READ,
    "approvals/bulk": Scope.READ,
    "budgets/ceilings": Scope.ADMIN,
    "budgets/prices": Scope.ADMIN,
    "budgets/rates": Scope.ADMIN,
    "corpora": Scope.ADMIN,
    "corpora/<str:corpus>/<str:document>": Scope.ADMIN,
    "http-tools": Scope.ADMIN,
    "models": Scope.ADMIN,
    "new/<slug:workflow>": Scope.SUBMIT,
    "destinations": Scope.ADMIN,
    "policy": Scope.ADMIN,
    "policy/rule": Scope.ADMIN,
    "policy/undo": Scope.ADMIN,
    "preferences": None,
    "reviews/<uuid:review_id>": Scope.DECIDE,
    "runs/<uuid:run_id>/actions?wish=pause": Scope.OPERATE,
    "runs/<uuid:run_id>/actions?wish=resume": Scope.OPERATE,
    "runs/<uuid:run_id>/actions?wish=cancel": Scope.SUBMIT,
    "runs/<uuid:run_id>/effects": Scope.DECIDE,
    "runs/<uuid:run_id>/replayed": Scope.READ,
    "runs/<uuid:run_id>/retry": Scope.OPERATE,
    "runs/bulk?wish=pause": Scope.OPERATE,
    "runs/bulk?wish=resume": Scope.OPERATE,
    "runs/bulk?wish=cancel": Scope.SUBMIT,
    "runs/views": Scope.READ,
    "runs/views/<uuid:view_id>": Scope.READ,
    "system/circuits/<uuid:circuit_id>": Scope.ADMIN,
    "system/stops/<uuid:stop_id>/lift": Scope.OPERATE,
    "system/reviewed/<uuid:run_id>": Scope.ADMIN,
    "system/stop": Scope.OPERATE,
    "tenant/keys": Scope.ADMIN,
    "tenant/keys/<uuid:key_id>/revoke": Scope.ADMIN,
    "tenant/keys/<uuid:key_id>/rotate": Scope.ADMIN,
    "tenant/members/<uuid:member_id>/limits": Scope.ADMIN,
    "tenant/members/<uuid:member_id>/remove": Scope.ADMIN,
    "tenant/people/<uuid:person_id>/link": Scope.ADMIN,
    "tenant/people/<uuid:person_id>/confirm": Scope.ADMIN,
    "tenant/people/<uuid:person_id>/deactivate": Scope.ADMIN,
    "tenant/people/<uuid:person_id>/lift": Scope.ADMIN,
    "tenant/people/invite": Scope.ADMIN,
    "tenant/queues": Scope.ADMIN,
    "tenant/queues/<uuid:queue_id>": Scope.ADMIN,
    "tenant/sign-in-rules": Scope.ADMIN,
    "tenant/sign-ins/<uuid:session_id>/end": Scope.ADMIN,
    "tenant/switch": None,
    "tenant/webhooks": Scope.ADMIN,
    "tenant/webhooks/<uuid:webhook_id>": Scope.ADMIN,
    "change-requests": Scope.ADMIN,
    "mcp-servers": Scope.ADMIN,
    "mcp-servers/<str:server>": Scope.ADMIN,
    "tools/<str:name>": Scope.ADMIN,
    "workflows/<str:slug>/<int:number>/retire": Scope.ADMIN,
    "workflows/_publish": Scope.ADMIN,
    "boundaries/_publish": Scope.ADMIN,
    "boundaries/<str:slug>": Scope.ADMIN,
    "boundaries/<str:slug>/<int:number>/retire": Scope.ADMIN,
}
TAKEN = {route.partition("?")[0] for route in WRITES}


def form(route: str, things: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Where a form goes and what it says: the route's own words, a reason, and what a stop, a key, an
    invitation and a finding need."""
    bare, _, words = route.partition("?")
    given = {
        "reason": "because", "what": "tenant:", "finding": "Fine.", "do": "take", "sure": "yes",
        "run": things["<uuid:run_id>"], "email": "new@people.example", "name": "new", "role": "auditor",
    }  # fmt: skip
    return address(bare, things), given | dict(parse_qsl(words))


def test_every_address_that_takes_a_form_has_its_scope(world: World) -> None:
    admin = at(world.people.admin)
    answers = {route: admin.post(address(route, nothing())).status_code for route in EVERY}
    assert {route for route, status in answers.items() if status != 405} == TAKEN


@proves("R-SEC-2", part="every form as each role")
@pytest.mark.parametrize("role", list(Role))
def test_whoever_lacks_the_scope_of_a_form_changes_nothing(world: World, role: Role) -> None:
    things, held = belongings(world), scopes_of((role,))
    client = at(make_somebody(world.house.tenant, role))
    for route in EVERY:
        if route not in TAKEN:
            assert client.post(*form(route, things)).status_code == 405, route
    for route, scope in WRITES.items():
        lacking = scope is not None and scope not in held
        before = standing(world)
        # Whoever may asks it of things that nobody has: the rest of the table is tried on what still stands.
        answer = client.post(*form(route, things if lacking else nothing()))
        if lacking:
            assert answer.status_code == 403, (route, answer.status_code)
            # A page that is not theirs to read says so before it says who may change what.
            assert any(f"scope {one}" in text(answer) for one in (scope, Scope.INSPECT)), route
            assert standing(world) == before, route
        else:
            assert "This page needs the scope" not in text(answer), (route, scope)


def standing(world: World) -> tuple[int, int]:
    """How much has been done in the tenant so far: by people, and in runs."""
    with tenant_transaction(world.id):
        return AuditEntry.objects.count(), Event.objects.count()
