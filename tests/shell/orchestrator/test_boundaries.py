"""Publishing boundaries: versions, and a second administrator for what is wider (R-GRAPH-10, R-GRAPH-11)."""

from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from orchestrator.core.approval.errors import OwnProposal, ProposalOpen, ProposalSettled
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.policies.actions.boundaries import (
    BoundaryPublication,
    ask_to_allow_tool,
    ask_to_publish_boundary,
    preview_boundary,
)
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.policies.queries.boundaries import boundary_document, boundary_in, newest_boundary
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.models import BoundaryVersion
from orchestrator.tools.actions.change_requests import agree_to_tool
from orchestrator.tools.actions.relaxation_proposals import drop_tool_proposal
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.core.errors import InvalidInput, Stale
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tenancy.people.dual_control import ALONE
from tests.conftest import House
from tests.factories.tenancy import Somebody, make_somebody
from tests.factories.world import World
from tests.journeys.conftest import world as world
from tests.proves import proves
from tests.shell.orchestrator.test_readiness import pins_of

SLUG = "tool-loop-default"


def word_of(who: Somebody) -> ChangeAuthor:
    """Their word."""
    return ChangeAuthor(principal=who.id, owner=who.person.id)


@pytest.fixture
def furnished(house: House) -> House:
    """A tenant of its own, without the demonstration."""
    seed_tenant(house.tenant.id, demonstration=False)
    return house


def standing(house: House, slug: str = SLUG) -> BoundaryVersion:
    """The version in force."""
    with tenant_transaction(house.tenant.id):
        found = newest_boundary(slug)
        assert found is not None
        return found


def changed(house: House, **changes: Any) -> dict[str, Any]:
    """The document in force with changes."""
    return {**boundary_document(standing(house)), **changes}


def ask(house: House, who: Somebody, document: dict[str, Any], **more: Any) -> Any:
    """What somebody asks for."""
    return ask_to_publish_boundary(house.tenant.id, document, who=word_of(who), **{"reason": "Ours.", **more})


@proves("R-GRAPH-11", part="a narrower boundary holds at once, audited")
def test_narrower_boundary_is_published_at_once_with_its_reason(furnished: House) -> None:
    make_somebody(furnished.tenant, Role.ADMIN)
    found = ask(furnished, furnished.people.admin, changed(furnished, refusal_limit=1))
    assert isinstance(found, BoundaryPublication)
    assert (found.new, found.version.version) == (True, 2)
    assert boundary_in(standing(furnished)).refusal_limit == 1
    with tenant_transaction(furnished.tenant.id):
        entry = AuditEntry.objects.get(verb="boundary.publish")
    assert (entry.object, entry.reason) == (f"boundary:{SLUG}", "Ours.")
    assert (entry.before["version"], entry.after["version"]) == (1, 2)
    again = ask(furnished, furnished.people.admin, changed(furnished))
    assert (again.new, again.version.version) == (False, 2)


@proves("R-GRAPH-11", part="a wider boundary waits for a second administrator")
def test_wider_boundary_waits_for_another_administrator(furnished: House) -> None:
    admin, second = furnished.people.admin, make_somebody(furnished.tenant, Role.ADMIN)
    row = ask(furnished, admin, changed(furnished, refusal_limit=9))
    assert isinstance(row, ToolProposal)
    assert (row.kind, row.weaker) == ("boundary", ["9 refusals by people, no longer 3."])
    assert standing(furnished).version == 1
    with pytest.raises(ProposalOpen):
        ask(furnished, admin, changed(furnished, refusal_limit=8))
    with pytest.raises(OwnProposal):
        agree_to_tool(furnished.tenant.id, row.id, who=word_of(admin), reason="Mine.")
    agree_to_tool(furnished.tenant.id, row.id, who=word_of(second), reason="Yes.")
    assert boundary_in(standing(furnished)).refusal_limit == 9
    with tenant_transaction(furnished.tenant.id):
        entry = AuditEntry.objects.get(verb="boundary.publish")
    assert (entry.principal, entry.after["proposed_by"]) == (second.id, str(admin.id))


def test_wider_boundary_that_waits_is_outdated_by_a_version_between(furnished: House) -> None:
    admin, second = furnished.people.admin, make_somebody(furnished.tenant, Role.ADMIN)
    row = ask(furnished, admin, changed(furnished, refusal_limit=9))
    ask(furnished, second, changed(furnished, refusal_limit=1))
    with pytest.raises(ProposalSettled, match="outdated before"):
        agree_to_tool(furnished.tenant.id, row.id, who=word_of(second), reason="Yes.")


def test_wider_boundary_that_is_refused_is_never_published(furnished: House) -> None:
    admin, second = furnished.people.admin, make_somebody(furnished.tenant, Role.ADMIN)
    row = ask(furnished, admin, changed(furnished, refusal_limit=9))
    drop_tool_proposal(furnished.tenant.id, row.id, who=word_of(second), reason="No.")
    assert standing(furnished).version == 1


@proves("R-GRAPH-11", part="an administrator who is alone gives a reason")
def test_wider_boundary_of_the_only_administrator_holds_at_once_and_is_audited_as_alone(
    furnished: House,
) -> None:
    admin = furnished.people.admin
    with pytest.raises(InvalidInput):
        ask(furnished, admin, changed(furnished, refusal_limit=9), reason=" ")
    found = ask(furnished, admin, changed(furnished, refusal_limit=9))
    assert isinstance(found, BoundaryPublication)
    with tenant_transaction(furnished.tenant.id):
        assert AuditEntry.objects.get(verb=ALONE).object == f"boundary {SLUG}"


def test_new_boundary_waits_unless_another_one_allows_as_much(furnished: House) -> None:
    admin = furnished.people.admin
    make_somebody(furnished.tenant, Role.ADMIN)
    narrower = changed(furnished, slug="mine", tools=[{"name": "clock.*", "risk_ceiling": "read_only"}])
    assert isinstance(ask(furnished, admin, narrower), BoundaryPublication)
    wider = changed(furnished, slug="wide", budget={}, profile="coding", refusal_limit=9)
    assert isinstance(ask(furnished, admin, wider), ToolProposal)


@proves("R-GRAPH-11", part="a new boundary waits for a second administrator whatever it allows")
def test_finding_4_new_boundary_without_tools_waits_where_it_allows_more(furnished: House) -> None:
    """A task may name it at once; and what is added later would be told as tools alone."""
    admin = furnished.people.admin
    make_somebody(furnished.tenant, Role.ADMIN)
    budget = {**standing_budget(furnished), "cost_usd": None}
    bare = changed(furnished, slug="bare", tools=[], budget=budget, compensation="automatic")
    row = ask(furnished, admin, bare)
    assert isinstance(row, ToolProposal)
    assert any("cost_usd none" in one for one in row.weaker)
    assert "What a failed run did is undone with nobody asked." in row.weaker
    assert isinstance(ask(furnished, admin, changed(furnished, slug="less", tools=[])), BoundaryPublication)


def standing_budget(house: House) -> dict[str, Any]:
    """The limits in force."""
    found: dict[str, Any] = boundary_document(standing(house))["budget"]
    return found


def test_boundary_of_a_tool_that_is_not_there_is_refused(furnished: House) -> None:
    tools = [{"name": "crm.find"}]
    with pytest.raises(InvalidInput) as caught:
        ask(furnished, furnished.people.admin, changed(furnished, tools=tools))
    (fault,) = caught.value.data["errors"]
    assert (fault["pointer"], fault["detail"]) == ("/tools/0/name", "There is no tool crm.find.")


def test_boundary_that_changed_since_it_was_looked_at_is_refused(furnished: House) -> None:
    with pytest.raises(Stale):
        ask(furnished, furnished.people.admin, changed(furnished, refusal_limit=1), expected=7)
    assert standing(furnished).version == 1


@proves("R-GRAPH-11", part="one more tool")
def test_allowed_tool_is_named_first_and_at_most_at_the_boundarys_ceiling(furnished: House) -> None:
    admin, house = furnished.people.admin, furnished.tenant.id
    ask_to_allow_tool(house, SLUG, "files.*", Risk.READ_ONLY, who=word_of(admin), reason="Ours.")
    first = boundary_in(standing(furnished)).tools[0]
    assert (first.name, first.risk_ceiling) == ("files.*", Risk.READ_ONLY)
    ask(furnished, admin, changed(furnished, risk_ceiling="read_only"))
    with pytest.raises(InvalidInput, match="not acceptable"):
        ask_to_allow_tool(house, SLUG, "files.*", Risk.NETWORK, who=word_of(admin), reason="Ours.")


def test_preview_of_a_boundary_tells_what_is_wider_and_publishes_nothing(furnished: House) -> None:
    found = preview_boundary(furnished.tenant.id, changed(furnished, memory="read"))
    assert found.weaker == ("Memory: read, no longer none.",)
    assert standing(furnished).version == 1


@proves("R-GRAPH-10", part="a run keeps the boundary that it was admitted with")
def test_admitted_run_keeps_its_boundary_and_a_new_one_gets_the_new_version(world: World) -> None:
    before = world.submit("tool-loop", "Tell the time")
    document = {**_document(world.id), "refusal_limit": 1}
    who = ChangeAuthor(principal=world.people.approver.principal.id, owner=world.people.approver.person.id)
    ask_to_publish_boundary(world.id, document, who=who, reason="Ours.")
    after = world.submit("tool-loop", "Tell the time again")
    assert [pins_of(world, run).boundary.version for run in (before, after)] == [1, 2]


def _document(tenant_id: UUID) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        row = newest_boundary(SLUG)
        assert row is not None
        return boundary_document(row)


def typed(*told: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("boundary", *told, stdout=out)
    return out.getvalue()


@proves("R-GRAPH-11", part="command")
def test_boundary_command_shows_checks_and_publishes(furnished: House, tmp_path: Path) -> None:
    of = ("--tenant", furnished.tenant.slug)
    file = tmp_path / "boundary.yaml"
    file.write_text(typed("show", SLUG, *of).replace("memory: none", "memory: read"))
    assert typed("check", str(file), *of) == "Memory: read, no longer none.\n"
    assert typed("publish", str(file), "--reason", "Ours.", *of) == f"{SLUG} v2  published\n"
    assert f"{SLUG}  v2  calculator.*" in typed("list", *of)
    file.write_text("slug: mine\nprofile: generous\n")
    with pytest.raises(CommandError, match=r"^profile: One of"):
        typed("publish", str(file), "--reason", "Ours.", *of)
    with pytest.raises(CommandError, match="no boundary"):
        typed("show", "nobodys", *of)
