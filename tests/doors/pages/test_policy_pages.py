"""Every page of policy as each role, and as somebody of another tenant (R-UI-5, R-UI-6, R-UI-7, R-UI-9)."""

from uuid import UUID

import pytest

from tenancy.core.roles import Role, Scope, scopes_of
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, AuditEntry, Membership
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

WORDS = {
    "/tools": "What runs may call", "/tools/calculator.evaluate": "Definition", "/workflows": "Under way",
    "/workflows/tool-loop": "The same graph as a list", "/budgets": "Where this month went",
    "/budgets/ledger": "Ledger", "/budgets/figures": "Distributions",
    "/budgets/prices": "A tool’s price is set on its page",
    "/tenant/people": "Roles and limits", "/tenant/keys": "API keys", "/tenant/audit": "Audit log",
    "/system": "Emergency stops in force",
}  # fmt: skip
INSPECTED = ("/tenant/people", "/tenant/keys", "/tenant/audit")
WRITES = (
    ("/tools/calculator.evaluate", Scope.ADMIN), ("/workflows/_publish", Scope.ADMIN),
    ("/workflows/tool-loop/1/retire", Scope.ADMIN), ("/budgets/ceilings", Scope.ADMIN),
    ("/budgets/prices", Scope.ADMIN), ("/tenant/keys", Scope.ADMIN), ("/tenant/people/invite", Scope.ADMIN),
    ("/system/stop", Scope.OPERATE),
)  # fmt: skip


@proves("R-UI-5", part="pages by role")
@proves("R-UI-6", part="pages by role")
@proves("R-UI-7", part="pages by role")
@proves("R-UI-9", part="pages by role")
def test_every_role_reads_every_page(world: World) -> None:
    for role in Role:
        client = at(make_somebody(world.house.tenant, role))
        for path, word in WORDS.items():
            answer = client.get(path)
            if path in INSPECTED and role is Role.CLIENT:
                assert answer.status_code == 403, path
                continue
            assert answer.status_code == 200, (role, path)
            assert word in text(answer), (role, path)


@proves("R-SEC-1", part="policy pages: writes by scope")
@pytest.mark.parametrize(("path", "scope"), WRITES)
def test_a_write_without_its_scope_is_403_says_so_and_changes_nothing(
    world: World, path: str, scope: Scope
) -> None:
    lacking = [role for role in Role if scope not in scopes_of((role,))]
    assert lacking
    someone = [make_somebody(world.house.tenant, role) for role in lacking]
    with tenant_transaction(world.id):
        before = AuditEntry.objects.count()
    for who in someone:
        answer = at(who).post(path, {"reason": "because", "enabled": "off", "what": "tenant:"})
        assert answer.status_code == 403
        assert scope.value in text(answer)
    with tenant_transaction(world.id):
        assert AuditEntry.objects.count() == before


@proves("R-SEC-1", part="policy pages: another tenant's ids")
def test_another_tenants_things_are_answered_like_missing_ones(world: World) -> None:
    other = world.people.other_tenant
    admin = at(make_somebody(other, Role.ADMIN))
    key = world.people.client_key.key.id
    with tenant_transaction(world.id):
        member = Membership.objects.filter(role="reviewer").values_list("id", flat=True)[0]

    def answers(member_id: UUID, key_id: UUID, tool: str, workflow: str) -> list[tuple[int, bool]]:
        found = [
            admin.get(f"/tools/{tool}"), admin.post(f"/tools/{tool}", {"enabled": "off", "reason": "x"}),
            admin.get(f"/workflows/{workflow}"), admin.get(f"/workflows/_publish?from={workflow}"),
            admin.post(f"/workflows/{workflow}/1/retire", {"reason": "x"}),
            admin.post(f"/tenant/members/{member_id}/remove", {"reason": "x"}),
            admin.post(f"/tenant/members/{member_id}/limits", {"max_risk": ""}),
            admin.post(f"/tenant/keys/{key_id}/revoke"), admin.post(f"/tenant/keys/{key_id}/rotate"),
            admin.post(f"/tenant/people/{member_id}/link"),
            admin.post(f"/system/stops/{member_id}/lift", {"reason": "x"}),
        ]  # fmt: skip
        return [(answer.status_code, "Not Found" in text(answer)) for answer in found]

    foreign = answers(member, key, "calculator.evaluate", "tool-loop")
    assert {status for status, _ in foreign} == {404}
    assert foreign == answers(fresh_id(), fresh_id(), "no.such", "none")
    with tenant_transaction(world.id):
        assert Membership.objects.filter(id=member).exists()
        assert ApiKey.objects.get(id=key).revoked_at is None


def test_an_empty_tenant_sees_what_will_be_there(world: World) -> None:
    admin = at(make_somebody(world.people.other_tenant, Role.ADMIN))
    assert "No tool yet" in text(admin.get("/tools"))
    assert "No workflow yet" in text(admin.get("/workflows"))
    assert "No entry" in text(admin.get("/budgets/ledger?cause=settle"))
