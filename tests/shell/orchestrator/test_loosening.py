"""What guards a tool less waits for a second administrator."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from orchestrator.core.approval.errors import BroughtAlong, OwnProposal, ProposalOpen, ProposalSettled
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.tools.actions.change_requests import (
    agree_to_tool,
    ask_for_databases,
    ask_for_mail,
    ask_to_change,
    ask_to_list,
)
from orchestrator.tools.actions.destinations import set_databases, set_mail
from orchestrator.tools.actions.relaxation_proposals import Asked, drop_tool_proposal
from orchestrator.tools.actions.tool_updates import change_tool
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.destinations import get_allowed_databases, mail_server
from orchestrator.tools.queries.relaxation_proposals import tool_proposals
from orchestrator.tools.queries.tools import tool_now
from tenancy.actions import add_member, remove_member
from tenancy.core.errors import InvalidInput, SecondPersonNeeded, Stale
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tenancy.secret_store import keep_secret
from tests.factories.tenancy import Somebody, make_somebody
from tests.factories.world import World
from tests.proves import proves

TOOL = "mail.send"
LESS = {"risk": "local_write"}


@pytest.fixture
def second(world: World) -> ChangeAuthor:
    """Another administrator."""
    return word_of(make_somebody(world.house.tenant, Role.ADMIN))


def word_of(who: Somebody) -> ChangeAuthor:
    """Their word."""
    return ChangeAuthor(principal=who.id, owner=who.person.id)


def ask(world: World, reason: str = "It only writes here.", **change: object) -> Asked:
    """What the administrator asks for."""
    who = word_of(world.people.admin)
    return ask_to_change(world.id, TOOL, asked_change(dict(change) or dict(LESS)), who=who, reason=reason)


def waiting(world: World) -> ToolProposal:
    """What waits after it was asked for."""
    found = ask(world)
    assert isinstance(found, ToolProposal)
    return found


def risk(world: World) -> str:
    """The class as it stands."""
    with tenant_transaction(world.id):
        return tool_now(world.id, TOOL).spec.risk.value


def allowed(world: World) -> tuple[str, ...]:
    """The web list that the fetching tool has."""
    with tenant_transaction(world.id):
        egress = tool_now(world.id, "web.fetch").spec.egress
    assert egress is not None
    return egress.allow


@proves("R-TOOL-4", part="a lower class needs a second administrator")
def test_a_lower_class_waits_until_somebody_else_agrees(world: World, second: ChangeAuthor) -> None:
    own, row = word_of(world.people.admin), waiting(world)
    assert (risk(world), row.weaker[0]) == ("network", "Its class falls from network to local_write.")
    for same in (own, ChangeAuthor(principal=fresh_id(), owner=own.owner)):
        with pytest.raises(OwnProposal):
            agree_to_tool(world.id, row.id, who=same, reason="Yes.")
    agree_to_tool(world.id, row.id, who=second, reason="Yes.")
    assert risk(world) == "local_write"
    with tenant_transaction(world.id):
        said = AuditEntry.objects.get(verb="tool.change", object=f"tool:{TOOL}")
        assert said.principal == own.principal
        assert said.after["agreed_by"] == str(second.principal)
    with pytest.raises(ProposalSettled, match="agreed before"):
        agree_to_tool(world.id, row.id, who=second, reason="Yes.")


@proves("R-TOOL-4", part="the second person is not made by the first")
def test_whom_the_first_one_made_an_administrator_that_day_is_no_second_person(
    world: World, second: ChangeAuthor, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, asker = waiting(world), world.people.admin
    friend = make_somebody(world.house.tenant, Role.REVIEWER)
    add_member(world.id, friend.person, Role.ADMIN, by=asker.id)
    theirs = make_somebody(world.house.tenant, Role.REVIEWER)
    add_member(world.id, theirs.person, Role.ADMIN, by=friend.id)
    for one in (friend, theirs):
        with pytest.raises(BroughtAlong):
            agree_to_tool(world.id, row.id, who=word_of(one), reason="Yes.")
    assert risk(world) == "network"
    tomorrow = database_now() + timedelta(days=1)
    monkeypatch.setattr("tenancy.people.relations.database_now", lambda: tomorrow)
    agree_to_tool(world.id, row.id, who=word_of(theirs), reason="Yes.")
    assert risk(world) == "local_write"


def test_no_verb_loosens_by_the_word_of_one_where_there_are_two(world: World, second: ChangeAuthor) -> None:
    with pytest.raises(SecondPersonNeeded, match="falls from network"):
        change_tool(world.id, TOOL, asked_change(dict(LESS)), by=second.principal, reason="Mine alone.")
    assert risk(world) == "network"


def test_where_one_administers_alone_their_word_is_enough(world: World) -> None:
    assert not isinstance(ask(world), ToolProposal)
    assert risk(world) == "local_write"


@proves("R-TOOL-4", part="the second person is not removed by the first")
def test_whoever_takes_the_other_ones_role_does_not_decide_alone_that_day(world: World) -> None:
    other = make_somebody(world.house.tenant, Role.ADMIN)
    assert remove_member(world.id, other.person, Role.ADMIN, by=world.people.admin.id, reason="Alone now.")
    waiting(world)
    assert risk(world) == "network"


def test_a_day_after_the_other_one_has_gone_one_administers_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in (Role.ADMIN, Role.REVIEWER):
        other = make_somebody(world.house.tenant, role)
        remove_member(world.id, other.person, role)
    tomorrow = database_now() + timedelta(days=1)
    monkeypatch.setattr("tenancy.people.member_queries.database_now", lambda: tomorrow)
    assert not isinstance(ask(world), ToolProposal)


@proves("R-TOOL-4", part="a wider web list needs a second administrator")
def test_a_wider_web_list_waits_and_a_narrower_one_holds_at_once(world: World, second: ChangeAuthor) -> None:
    own = word_of(world.people.admin)
    row = ask_to_list(world.id, ("https://docs.example/*",), expected=0, who=own, reason="Ours.")
    assert isinstance(row, ToolProposal)
    assert (row.weaker, allowed(world)) == (["It is read without asking: https://docs.example/*"], ())
    with pytest.raises(OwnProposal):
        agree_to_tool(world.id, row.id, who=own, reason="Yes.")
    agree_to_tool(world.id, row.id, who=second, reason="Yes.")
    assert allowed(world) == ("https://docs.example/*",)
    late = ask_to_list(world.id, ("https://x.example/",), expected=1, who=own, reason="More.")
    assert isinstance(late, ToolProposal)
    assert not isinstance(ask_to_list(world.id, (), expected=1, who=own, reason="Less."), ToolProposal)
    with pytest.raises(ProposalSettled, match="outdated before"):
        agree_to_tool(world.id, late.id, who=second, reason="Yes.")
    assert allowed(world) == ()


BOOKS = {"name": "books", "host": "203.0.114.7", "database": "books", "reader": "books"}
POST = {"sender": "agent@house.example", "host": "203.0.114.8", "domains": ["house.example"]}


@proves("R-TOOL-4", part="a wider list of databases needs a second administrator")
def test_another_database_waits_and_one_less_does_not(world: World, second: ChangeAuthor) -> None:
    own = word_of(world.people.admin)
    row = ask_for_databases(world.id, (BOOKS,), expected=0, who=own, reason="Ours.")
    assert isinstance(row, ToolProposal)
    assert row.weaker == [
        "Tools ask books at postgresql://203.0.114.7:5432/books, as whomever the secret books names."
    ]
    with tenant_transaction(world.id):
        assert get_allowed_databases().databases == ()
    agree_to_tool(world.id, row.id, who=second, reason="Yes.")
    with tenant_transaction(world.id):
        assert [one.name for one in get_allowed_databases().databases] == ["books"]
    keep_secret(world.id, "books", "app:old", origin="postgresql://203.0.114.7:5432/books", by=None)
    assert not isinstance(
        ask_for_databases(world.id, (BOOKS,), expected=1, who=own, reason="By name."), ToolProposal
    )
    keep_secret(world.id, "books", "owner:x", origin="postgresql://203.0.114.7:5432/books", by=None)
    swapped = ask_for_databases(world.id, (BOOKS,), expected=2, who=own, reason="Ours.")
    assert isinstance(swapped, ToolProposal)
    assert swapped.weaker == ["books is asked under another role: owner."]
    keep_secret(world.id, "books", "superuser:x", origin="postgresql://203.0.114.7:5432/books", by=None)
    agree_to_tool(world.id, swapped.id, who=second, reason="To owner alone.")
    with tenant_transaction(world.id):
        assert [one.reader_account for one in get_allowed_databases().databases] == ["owner"]
    writing = {**BOOKS, "reader_account": "owner", "writer": "books_writer"}
    assert isinstance(
        ask_for_databases(world.id, (writing,), expected=3, who=own, reason="More."), ToolProposal
    )
    now = ask_for_databases(world.id, (), expected=3, who=own, reason="None.")
    assert (isinstance(now, ToolProposal), waiting_for(world)) == (False, [])


@proves("R-TOOL-4", part="a wider way of letters needs a second administrator")
def test_more_recipients_wait_and_fewer_do_not(world: World, second: ChangeAuthor) -> None:
    own = word_of(world.people.admin)
    row = ask_for_mail(world.id, POST, expected=0, who=own, reason="Ours.")
    assert isinstance(row, ToolProposal)
    agree_to_tool(world.id, row.id, who=second, reason="Yes.")
    fewer = ask_for_mail(world.id, {**POST, "domains": []}, expected=1, who=own, reason="Fewer.")
    assert not isinstance(fewer, ToolProposal)
    more = ask_for_mail(world.id, {**POST, "domains": None}, expected=2, who=own, reason="All.")
    assert isinstance(more, ToolProposal)
    assert more.weaker == ["Letters go to any recipient."]
    with tenant_transaction(world.id):
        server = mail_server()
    assert server is not None
    assert server.domains == ()


@pytest.mark.parametrize("verb", [set_databases, set_mail])
def test_neither_verb_reaches_further_by_the_word_of_one_where_there_are_two(
    world: World, second: ChangeAuthor, verb: Any
) -> None:
    given: Any = (BOOKS,) if verb is set_databases else POST
    with pytest.raises(SecondPersonNeeded):
        verb(world.id, given, expected=None, by=second.principal, reason="Mine alone.")
    verb(world.id, given, expected=None, by=None, reason="By whoever runs the house.")


def waiting_for(world: World) -> list[str]:
    """What still waits, by what it is about."""
    with tenant_transaction(world.id):
        return [row.tool for row in tool_proposals()]


def test_what_is_stricter_or_no_guard_holds_at_once(world: World, second: ChangeAuthor) -> None:
    assert not isinstance(ask(world, risk="destructive", timeout_ms=999), ToolProposal)
    assert risk(world) == "destructive"


def test_one_waits_at_a_time_and_can_be_refused_or_taken_back(world: World, second: ChangeAuthor) -> None:
    for who, became in ((second, "refused"), (word_of(world.people.admin), "withdrawn")):
        row = waiting(world)
        with pytest.raises(ProposalOpen):
            ask(world)
        drop_tool_proposal(world.id, row.id, who=who, reason="No.")
        with tenant_transaction(world.id):
            assert ToolProposal.objects.get(id=row.id).status == became
    with pytest.raises(InvalidInput):
        ask(world, reason=" ")
    assert risk(world) == "network"


@proves("R-TOOL-4", part="what waits about another version is settled as outdated")
@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        ({"timeout_ms": 999}, "The tool has changed since it was asked for."),
        ({"enabled": False}, "The tool was taken out of use."),
    ],
)
def test_a_word_about_another_version_counts_for_nothing(
    world: World, second: ChangeAuthor, meanwhile: dict[str, object], why: str
) -> None:
    row = waiting(world)
    change_tool(world.id, TOOL, asked_change(meanwhile), by=None, reason="Meanwhile.")
    with pytest.raises(ProposalSettled, match="outdated before"):
        agree_to_tool(world.id, row.id, who=second, reason="Yes.")
    with tenant_transaction(world.id):
        settled = ToolProposal.objects.get(id=row.id)
        assert (settled.status, settled.settled_by, settled.settled_reason) == ("outdated", None, why)
        said = AuditEntry.objects.get(verb="tool.outdate_proposal")
        assert (said.principal, said.object, said.reason) == (None, f"tool:{TOOL}", why)
    assert isinstance(ask(world), ToolProposal)


def test_one_that_was_left_open_by_an_older_version_is_not_agreed_to(
    world: World, second: ChangeAuthor
) -> None:
    row = waiting(world)
    with tenant_transaction(world.id):
        ToolProposal.objects.filter(id=row.id).update(status="withdrawn")
        old = ToolProposal.objects.create(
            tenant_id=world.id, kind="change", tool=TOOL, tag="0" * 32 + ".on", body=row.body,
            weaker=row.weaker, reason="Old.", by=row.by, owner=row.owner, at=database_now(),
        )  # fmt: skip
    with pytest.raises(Stale):
        agree_to_tool(world.id, old.id, who=second, reason="Yes.")
    assert isinstance(ask(world), ToolProposal)
    with tenant_transaction(world.id):
        assert ToolProposal.objects.get(id=old.id).status == "outdated"


@proves("R-TOOL-4", part="the database itself asks for the second person")
def test_the_database_knows_who_agreed_and_lets_nothing_be_rewritten(
    world: World, second: ChangeAuthor
) -> None:
    row = waiting(world)
    own = {"settled_by": fresh_id(), "settled_owner": row.owner}
    changes: list[dict[str, Any]] = [
        {"status": "agreed"}, {"status": "agreed", **own}, {"body": {}}, {"by": fresh_id()},
    ]  # fmt: skip
    for change in changes:
        with tenant_transaction(world.id), pytest.raises(DatabaseError), transaction.atomic():
            ToolProposal.objects.filter(id=row.id).update(**change)
