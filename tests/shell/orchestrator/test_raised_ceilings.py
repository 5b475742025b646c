"""Raising or removing a ceiling waits for a second administrator (R-BUDGET-9)."""

from decimal import Decimal

import pytest

from budgets.actions import change_ceilings, newest_ceilings
from budgets.core.ceilings import Ceilings
from orchestrator.core.approval.errors import BroughtAlong, OwnProposal, ProposalSettled
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.tenants.actions.limit_changes import ask_for_ceilings
from orchestrator.tools.actions.change_requests import agree_to_tool
from orchestrator.tools.actions.relaxation_proposals import drop_tool_proposal
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.actions import add_member, create_key, remove_member
from tenancy.core.errors import InvalidInput, SecondPersonNeeded, Stale
from tenancy.core.roles import Role
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, Principal
from tenancy.people.dual_control import ALONE
from tests.conftest import House
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves

SHIPPED = Ceilings(per_run_usd=Decimal(5), daily_usd=Decimal(100), monthly_usd=Decimal(1000))
HIGHER = [{"daily_usd": None}, {"monthly_usd": Decimal("1000.01")}, {"per_run_usd": Decimal(6)}]


def word_of(who: Somebody) -> ChangeAuthor:
    """Their word."""
    return ChangeAuthor(principal=who.id, owner=who.person.id)


def standing(house: House) -> Ceilings:
    """The ceilings in force."""
    with tenant_transaction(house.tenant.id):
        return newest_ceilings(house.tenant.id, raw_cursor())


def ask(house: House, who: Somebody, wanted: Ceilings, reason: str = "More work") -> Ceilings | ToolProposal:
    """What somebody asks for."""
    return ask_for_ceilings(house.tenant.id, wanted, expected=None, who=word_of(who), reason=reason)


@proves("R-BUDGET-9", part="more is spent only with a second administrator's word")
@pytest.mark.parametrize("more", HIGHER)
def test_a_ceiling_that_is_raised_or_removed_waits_for_another_administrator(
    house: House, more: dict[str, Decimal | None]
) -> None:
    admin, second = house.people.admin, make_somebody(house.tenant, Role.ADMIN)
    wanted = SHIPPED.model_copy(update=more)
    row = ask(house, admin, wanted)
    assert isinstance(row, ToolProposal)
    assert standing(house) == SHIPPED
    with pytest.raises(OwnProposal):
        agree_to_tool(house.tenant.id, row.id, who=word_of(admin), reason="Mine.")
    agree_to_tool(house.tenant.id, row.id, who=word_of(second), reason="Yes.")
    assert standing(house) == wanted
    with tenant_transaction(house.tenant.id):
        said = AuditEntry.objects.get(verb="set_ceilings")
        assert (said.principal, said.after["agreed_by"]) == (admin.id, str(second.id))


@proves("R-BUDGET-9", part="a lower ceiling holds at once")
def test_a_lower_ceiling_holds_at_once_and_outdates_what_waits(house: House) -> None:
    admin, second = house.people.admin, make_somebody(house.tenant, Role.ADMIN)
    row = ask(house, admin, SHIPPED.model_copy(update={"daily_usd": None}))
    assert isinstance(row, ToolProposal)
    lower = SHIPPED.model_copy(update={"daily_usd": Decimal(50)})
    assert ask(house, second, lower) == lower
    with pytest.raises(ProposalSettled, match="outdated before"):
        agree_to_tool(house.tenant.id, row.id, who=word_of(second), reason="Yes.")
    assert standing(house) == lower


def test_a_change_that_waits_is_refused_once_the_ceilings_are_others(house: House) -> None:
    admin, second = house.people.admin, make_somebody(house.tenant, Role.ADMIN)
    row = ask(house, admin, SHIPPED.model_copy(update={"daily_usd": None}))
    assert isinstance(row, ToolProposal)
    lower = SHIPPED.model_copy(update={"daily_usd": Decimal(50)})
    change_ceilings(house.tenant.id, lower, by=None, reason="The operator's")
    with pytest.raises(Stale):
        agree_to_tool(house.tenant.id, row.id, who=word_of(second), reason="Yes.")


@proves("R-SEC-6", part="one administrator alone")
def test_an_administrator_alone_raises_a_ceiling_with_a_reason_that_is_audited(house: House) -> None:
    admin, wanted = house.people.admin, SHIPPED.model_copy(update={"daily_usd": None})
    with pytest.raises(InvalidInput):
        ask(house, admin, wanted, reason=" ")
    assert ask(house, admin, wanted, reason="A launch") == wanted
    with tenant_transaction(house.tenant.id):
        said = AuditEntry.objects.get(verb=ALONE)
    assert (said.principal, said.object, said.reason) == (admin.id, "the ceilings", "A launch")
    assert said.after["weaker"] == ["No ceiling holds for a day any more; it was $100."]


def test_whoever_removed_the_other_administrator_today_still_waits_for_one(house: House) -> None:
    admin, second = house.people.admin, make_somebody(house.tenant, Role.ADMIN)
    remove_member(house.tenant.id, second.person, Role.ADMIN, by=admin.id)
    assert isinstance(ask(house, admin, SHIPPED.model_copy(update={"daily_usd": None})), ToolProposal)


def test_no_verb_raises_a_ceiling_by_the_word_of_one_where_there_are_two(house: House) -> None:
    make_somebody(house.tenant, Role.ADMIN)
    with pytest.raises(SecondPersonNeeded, match="No ceiling holds for a day"):
        change_ceilings(
            house.tenant.id, SHIPPED.model_copy(update={"daily_usd": None}), by=house.people.admin.id,
            reason="Mine alone",
        )  # fmt: skip
    assert standing(house) == SHIPPED


def test_another_tenants_proposal_is_not_there(house: House) -> None:
    make_somebody(house.tenant, Role.ADMIN)
    row = ask(house, house.people.admin, SHIPPED.model_copy(update={"daily_usd": None}))
    assert isinstance(row, ToolProposal)
    with tenant_transaction(house.people.other_tenant.id):
        assert not ToolProposal.objects.filter(id=row.id).exists()


def keyed(house: House, maker: Somebody) -> ChangeAuthor:
    """The word of an administrator's key without an owner, whose secret somebody was shown."""
    made = create_key(house.tenant.id, Role.ADMIN, by=maker.id)
    with tenant_transaction(house.tenant.id):
        principal = Principal.objects.get(id=made.key.principal_id)
    return ChangeAuthor(principal=principal.id, owner=principal.owner_id)


@proves("R-BUDGET-9", part="an ownerless key is no second administrator")
def test_nobody_is_their_own_second_administrator_by_a_key_that_nobody_owns(house: House) -> None:
    admin, second = house.people.admin, make_somebody(house.tenant, Role.ADMIN)
    key, wanted = keyed(house, admin), SHIPPED.model_copy(update={"daily_usd": None})
    row = ask_for_ceilings(house.tenant.id, wanted, expected=None, who=key, reason="More work")
    assert isinstance(row, ToolProposal)
    with pytest.raises(OwnProposal):
        agree_to_tool(house.tenant.id, row.id, who=word_of(admin), reason="Mine.")
    drop_tool_proposal(house.tenant.id, row.id, who=word_of(admin), reason="Another way.")
    other = ask(house, admin, wanted)
    assert isinstance(other, ToolProposal)
    with pytest.raises(OwnProposal):
        agree_to_tool(house.tenant.id, other.id, who=key, reason="Mine.")
    agree_to_tool(house.tenant.id, other.id, who=word_of(second), reason="Yes.")
    assert standing(house) == wanted


def test_whoever_administers_alone_is_no_other_than_their_key(house: House) -> None:
    key, wanted = keyed(house, house.people.admin), SHIPPED.model_copy(update={"daily_usd": None})
    found = ask_for_ceilings(house.tenant.id, wanted, expected=None, who=key, reason="A launch")
    assert found == wanted


@proves("R-BUDGET-9", part="the second administrator is unrelated to the first")
def test_whom_the_first_made_an_administrator_today_raises_no_ceiling_with_them(house: House) -> None:
    admin, friend = house.people.admin, make_somebody(house.tenant, Role.REVIEWER)
    add_member(house.tenant.id, friend.person, Role.ADMIN, by=admin.id)
    row = ask(house, admin, SHIPPED.model_copy(update={"daily_usd": None}))
    assert isinstance(row, ToolProposal)
    with pytest.raises(BroughtAlong):
        agree_to_tool(house.tenant.id, row.id, who=word_of(friend), reason="Yes.")
