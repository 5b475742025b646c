"""Tools without code, in runs, against a real service: sent once, with its secret, verified, looked up."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from orchestrator.core.common.errors import EgressRefused, NameTaken
from orchestrator.core.domain.call_outcomes import REFUSALS
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.core.tools.registration import asked_declaration
from orchestrator.policies.actions.policy_versions import ChangeAuthor
from orchestrator.tools.actions.change_requests import agree_to_tool, ask_to_declare
from orchestrator.tools.actions.http_tools import declare_http_tool
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tools import ToolNow
from tenancy.core.errors import InvalidInput, SecretUnusable
from tenancy.core.roles import Role
from tenancy.secret_store import keep_secret, revoke_secret
from tests.conftest import House
from tests.doubles.crm import Crm
from tests.doubles.openai_server import Call
from tests.factories.foreign import Obedient, called, foreign, onwards
from tests.factories.servers import CHANGES, READS, let_in
from tests.factories.tenancy import make_somebody
from tests.factories.world import World, make_world
from tests.proves import proves

TEXT = {"type": "string", "maxLength": 200}
NOTE = {"person": "ada", "text": "Thank you."}


@pytest.fixture
def crm() -> Iterator[Crm]:
    """A service of this test's own."""
    found = Crm()
    yield found
    found.close()


@pytest.fixture
def world(house: House, crm: Crm) -> World:
    """A furnished house that may reach the service, with a secret for it."""
    found = make_world(house)
    set_places(found.id, (crm.place,), expected=None, by=None, reason="Ours.")
    keep_secret(found.id, "crm", "tok-31415926", origin=crm.origin, by=None)
    return found


def find(crm: Crm, **more: Any) -> dict[str, Any]:
    """A tool that reads."""
    return {
        "name": "crm.find", "description": "Find a person.", **READS,
        "input_schema": {"type": "object", "properties": {"person": TEXT}, "required": ["person"]},
        "request": {
            "method": "GET", "url": f"{crm.origin}/people/{{person}}", "secret": "crm",
            "secret_header": "X-Token", "secret_form": "{secret}",
        }, **more,
    }  # fmt: skip


def add(crm: Crm, **more: Any) -> dict[str, Any]:
    """A tool that changes something."""
    return {
        "name": "crm.add_note", "description": "Add a note.", **CHANGES,
        "input_schema": {
            "type": "object", "properties": {"person": TEXT, "text": TEXT}, "required": ["text"],
        },
        "output_schema": {"type": "object", "required": ["id"]},
        "verifier": {"name": "schema", "equal": {"/result/text": "/arguments/text"}},
        "request": {"method": "POST", "url": f"{crm.origin}/people/{{person}}/notes", "body": "rest"}, **more,
    }  # fmt: skip


def declare(world: World, given: dict[str, Any]) -> ToolNow:
    """Declare it, and let the tool loop call it."""
    made = declare_http_tool(world.id, asked_declaration(given), by=None, reason="We need it.")
    let_in(world, "crm")
    return made


def asking(world: World, settings: Settings, *calls: Call) -> Any:
    """A run that asks for these calls."""
    with foreign(settings, Obedient(*calls)):
        run = world.submit("tool-loop", "Do it.")
        onwards(world, run)
        for request in world.open_requests(run):
            world.decide(request, world.people.approver)
        onwards(world, run)
    return run


@proves("R-TOOL-20", part="a read without code")
def test_a_declared_read_is_made_with_its_secret_which_nobody_sees(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, find(crm))
    run = asking(world, settings, called("crm.find", person="ada"))
    assert crm.seen == [{"path": "/people/ada", "token": "tok-31415926", "body": None}]
    assert world.run(run).terminal_code == "SUCCESS"
    (fact,) = world.said(run, "fact_committed")
    assert fact["trust"] == "untrusted"
    recorded = str([world.said(run, kind) for kind in set(world.kinds(run))])
    assert "rrr [secre" in recorded
    assert "tok-" not in recorded
    world.sound(run)


@proves("R-TOOL-20", part="a change without code waits for its approval")
def test_a_declared_change_waits_happens_once_and_is_verified(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, add(crm))
    run = asking(world, settings, called("crm.add_note", **NOTE))
    assert [note["text"] for note in crm.notes] == ["Thank you."]
    assert world.run(run).terminal_code == "SUCCESS"
    assert len(world.said(run, "approval_requested")) == 1
    world.sound(run)


@proves("R-TOOL-9", part="a declared look-up")
def test_a_declared_change_that_failed_after_it_was_made_is_found_and_not_repeated(
    world: World, crm: Crm, settings: Settings
) -> None:
    lookup = {"path": "/notes", "arguments": {"key": "/key"}, "found": "/notes"}
    declare(world, add(crm, recovery="lookup", lookup=lookup, conclusive=True))
    crm.status = 500
    run = asking(world, settings, called("crm.add_note", **NOTE))
    assert [one["resolution"] for one in world.said(run, "call_recovered")] == ["found"]
    assert len(crm.notes) == 1
    world.sound(run)


@proves("R-TOOL-10", part="a status after a change is believed where it is given before anything is done")
@proves("G6", part="a status after the commit")
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(
    ("status", "opens"),
    [
        *((one, False) for one in sorted(REFUSALS)),
        *((one, True) for one in (402, 408, 409, 410, 425, 500, 503)),
    ],
)
def test_a_change_that_answers_with_an_error_is_told_asks_nobody_and_is_sent_once(
    world: World, crm: Crm, settings: Settings, status: int, opens: bool, declared: bool
) -> None:
    declare(world, add(crm, error_means_no_effect=declared))
    crm.status = status
    run = asking(world, settings, called("crm.add_note", **NOTE))
    assert [one["request_kind"] for one in world.said(run, "approval_requested")] == ["action"]
    assert crm.posts() == 1
    assert len(world.said(run, "effect_left_open")) == int(opens and not declared)
    assert ("open_effects" in world.result(run)) == (opens and not declared)
    world.sound(run)


@proves("R-TOOL-9", part="a status is looked into")
@pytest.mark.parametrize("made", [True, False])
def test_a_status_is_believed_where_a_conclusive_look_up_finds_nothing(
    world: World, crm: Crm, settings: Settings, made: bool
) -> None:
    lookup = {"path": "/notes", "arguments": {"key": "/key"}, "found": "/notes"}
    declare(world, add(crm, recovery="lookup", lookup=lookup, conclusive=True))
    crm.status, crm.makes = 409, made
    run = asking(world, settings, called("crm.add_note", **NOTE))
    found = [one["resolution"] for one in world.said(run, "call_recovered")]
    assert (found, crm.posts(), len(crm.notes)) == (["found"] if made else [], 1, int(made))
    assert world.said(run, "call_observed")[-1]["status"] == ("found" if made else "refused")
    world.sound(run)


@proves("P8", part="a declared tool's redirect")
def test_a_redirect_of_a_declared_read_leads_nowhere_else(world: World, crm: Crm, settings: Settings) -> None:
    declare(world, find(crm))
    crm.redirect = "http://169.254.169.254/latest/meta-data"
    run = asking(world, settings, called("crm.find", person="ada"))
    assert len(crm.seen) == 1
    assert world.said(run, "fact_committed") == []


def test_what_an_admin_takes_away_is_gone_at_the_next_call(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, find(crm))
    revoke_secret(world.id, "crm", by=None, reason="Leaked.")
    asking(world, settings, called("crm.find", person="ada"))
    keep_secret(world.id, "crm", "tok-2", origin=crm.origin, by=None)
    set_places(world.id, (), expected=None, by=None, reason="No more.")
    asking(world, settings, called("crm.find", person="ada"))
    assert crm.seen == []


def test_a_declaration_is_refused_for_its_name_place_secret_or_reader(world: World, crm: Crm) -> None:
    reader = {"name": "read_back", "read_back": {"tool": "payments.refund", "arguments": {}}}
    for given, error in (
        (find(crm, name="mail.find_all"), NameTaken),
        (find(crm, request={"method": "GET", "url": "http://10.0.0.9/x"}), EgressRefused),
        (find(crm, request={"method": "GET", "url": f"{crm.origin}/x", "secret": "none"}), SecretUnusable),
        (add(crm, verifier=reader), InvalidInput),
    ):
        with pytest.raises(error):
            declare_http_tool(world.id, asked_declaration(given), by=None, reason="We need it.")
    keep_secret(world.id, "other", "tok-2", origin="https://other.example", by=None)
    elsewhere = {"method": "GET", "url": f"{crm.origin}/x", "secret": "other"}
    with pytest.raises(SecretUnusable, match="kept for"):
        declare_http_tool(world.id, asked_declaration(find(crm, request=elsewhere)), by=None, reason="No.")


def test_the_same_again_is_the_version_that_stands_and_a_change_is_a_new_one(world: World, crm: Crm) -> None:
    assert declare(world, find(crm)).spec.version == 1
    assert declare(world, find(crm)).spec.version == 1
    assert declare(world, find(crm, timeout_ms=900)).spec.version == 2


@proves("R-TOOL-20", part="the network is asked before the registry is held")
def test_a_second_persons_yes_asks_the_network_before_it_holds_the_registry(
    world: World, crm: Crm, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = [
        ChangeAuthor(principal=one.id, owner=one.person.id)
        for one in (world.people.admin, make_somebody(world.house.tenant, Role.ADMIN))
    ]
    given = add(crm, sensitive=[])
    row = ask_to_declare(world.id, asked_declaration(given), who=who[0], reason="Ours.")
    assert isinstance(row, ToolProposal)
    looked: list[bool] = []

    def look(address: str, leave: EgressPolicy) -> None:
        looked.append(connection.in_atomic_block)

    monkeypatch.setattr("orchestrator.tools.actions.http_tools.look_before_saving", look)
    now = agree_to_tool(world.id, row.id, who=who[1], reason="Yes.")
    assert isinstance(now, ToolNow)
    assert now.spec.name == given["name"]
    assert looked == [False]
