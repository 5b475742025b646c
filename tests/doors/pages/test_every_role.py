"""Every address of the console as each role: whoever holds its scope is let in, nobody else (R-SEC-2)."""

import pytest

from tenancy.core.roles import Role, Scope, scopes_of
from tests.doors.api.doors import ONLY_THEIRS
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.doors.pages.test_every_page import EVERY, address, belongings
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

pytestmark = pytest.mark.slow

# Who may open an address, with what it must be asked: its scope; None: every member.
SCOPE_OF: dict[str, Scope | None] = {
    "": Scope.READ,
    "approvals": Scope.READ,
    "approvals/<uuid:request_id>": Scope.READ,
    "approvals/changes.html": Scope.READ,
    "approvals/bulk": Scope.READ,
    "budgets": Scope.READ,
    "budgets/figures": Scope.READ,
    "budgets/ledger": Scope.READ,
    "budgets/ledger.csv": Scope.READ,
    "budgets/prices": Scope.READ,
    "corpora": Scope.READ,
    "corpora/<str:corpus>": Scope.READ,
    "corpora/<str:corpus>/<str:document>": Scope.READ,
    "http-tools": Scope.INSPECT,
    "models": Scope.INSPECT,
    "new": Scope.SUBMIT,
    "new/<slug:workflow>": Scope.SUBMIT,
    "destinations": Scope.INSPECT,
    "overview/changes.html": Scope.READ,
    "palette": None,
    "policy": Scope.READ,
    "policy/rule": Scope.ADMIN,
    "policy/undo": Scope.READ,
    "preferences": None,
    "reviews": Scope.READ,
    "reviews/<uuid:review_id>": Scope.READ,
    "runs": Scope.READ,
    "runs/<uuid:run_id>": Scope.READ,
    "runs/<uuid:run_id>/actions?wish=pause": Scope.OPERATE,
    "runs/<uuid:run_id>/actions?wish=resume": Scope.OPERATE,
    "runs/<uuid:run_id>/actions?wish=cancel": Scope.SUBMIT,
    "runs/<uuid:run_id>/effects": Scope.READ,
    "runs/<uuid:run_id>/events.html": Scope.READ,
    f"runs/<uuid:run_id>/file?path={ONLY_THEIRS['file']}": Scope.READ,
    "runs/<uuid:run_id>/files.zip": Scope.READ,
    "runs/<uuid:run_id>/replayed": Scope.READ,
    # It takes SUBMIT as well, which every role that operates has.
    "runs/<uuid:run_id>/retry": Scope.OPERATE,
    "runs/<uuid:run_id>/rows/<int:seq>": Scope.READ,
    "runs/<uuid:run_id>/trace.jsonl": Scope.READ,
    "runs/changes.html": Scope.READ,
    "runs/views": Scope.READ,
    "styleguide": None,
    "system": Scope.READ,
    "system/circuits": Scope.READ,
    "system/circuits/<uuid:circuit_id>": Scope.READ,
    "tenant/sign-in-rules": Scope.INSPECT,
    "tenant/sign-ins": Scope.ADMIN,
    "tenant/audit": Scope.INSPECT,
    "tenant/keys": Scope.INSPECT,
    "tenant/people": Scope.INSPECT,
    "tenant/queues": Scope.INSPECT,
    "tenant/webhooks": Scope.ADMIN,
    "tenant/webhooks/<uuid:webhook_id>": Scope.ADMIN,
    "change-requests": Scope.INSPECT,
    "mcp-servers": Scope.INSPECT,
    "mcp-servers/<str:server>": Scope.INSPECT,
    "tools": Scope.READ,
    "tools/<str:name>": Scope.READ,
    "boundaries": Scope.READ,
    "boundaries/<str:slug>": Scope.READ,
    "boundaries/_publish": Scope.ADMIN,
    "workflows": Scope.READ,
    "workflows/<str:slug>": Scope.READ,
    "workflows/_publish": Scope.ADMIN,
}
# What takes a form alone: whoever opens its address, role or no role, is led to the page the form stands on.
FORMS = {
    "approvals/<uuid:request_id>/preview",
    "budgets/ceilings",
    "budgets/rates",
    "runs/bulk",
    "runs/views/<uuid:view_id>",
    "system/stops/<uuid:stop_id>/lift",
    "system/reviewed/<uuid:run_id>",
    "system/stop",
    "tenant/keys/<uuid:key_id>/revoke",
    "tenant/keys/<uuid:key_id>/rotate",
    "tenant/members/<uuid:member_id>/limits",
    "tenant/members/<uuid:member_id>/remove",
    "tenant/people/<uuid:person_id>/link",
    "tenant/people/<uuid:person_id>/confirm",
    "tenant/people/<uuid:person_id>/deactivate",
    "tenant/people/<uuid:person_id>/lift",
    "tenant/people/invite",
    "tenant/queues/<uuid:queue_id>",
    "tenant/sign-ins/<uuid:session_id>/end",
    "tenant/switch",
    "workflows/<str:slug>/<int:number>/retire",
    "boundaries/<str:slug>/<int:number>/retire",
}


def test_every_address_has_its_scope_or_takes_a_form() -> None:
    asked = {route.partition("?")[0] for route in SCOPE_OF}
    assert asked.isdisjoint(FORMS)
    assert sorted(asked | FORMS) == EVERY


@proves("R-SEC-2", part="every page as each role")
def test_each_role_opens_just_the_pages_of_its_scopes(world: World) -> None:
    things = belongings(world)
    for role in Role:
        client, held = at(make_somebody(world.house.tenant, role)), scopes_of((role,))
        for route, scope in SCOPE_OF.items():
            answer = client.get(address(route, things))
            if scope is None or scope in held:
                assert answer.status_code in (200, 303), (role, route, answer.status_code)
            else:
                assert answer.status_code == 403, (role, route, answer.status_code)
                assert f"scope {scope.value}" in text(answer), (role, route)
        for route in FORMS:
            assert client.get(address(route, things)).status_code == 303, (role, route)
