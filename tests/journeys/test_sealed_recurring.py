"""A value that became known as a secret after it was written elsewhere (R-TOOL-9, R-TOOL-12, R-SEC-4): later
calls are compared with what was asked before, and with what was made, as if nothing had been sealed."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from pytest_django import Settings

from orchestrator import bundled_content
from orchestrator.runs.queries.runs import state_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.doubles.crm import Crm
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import calls, said
from tests.factories.denied import DOWN
from tests.factories.foreign import called, foreign, onwards, to_the_end
from tests.factories.retrying import retried
from tests.factories.servers import let_in
from tests.factories.world import World, company_at
from tests.journeys.test_open_effects import adds, kinds
from tests.journeys.test_sealed_shapes import takes
from tests.journeys.test_sealed_values import Scripted, rows_with
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import declare
from tests.shell.orchestrator.test_http_tools import world as world

# A secret of this module alone: it stands in the clear until the run knows it for one.
LOGIN = "magpie-by-the-gate"
WORDS = f"Her new word is {LOGIN}."
NOTE = called("crm.add_note", person="ada", text=WORDS)
# These stand in no other test's rows.
FIRST, OTHER = "badger-in-the-hedge", "otter-under-the-stairs"
KEPT = "heron-on-the-roof"
SET = called("crm.change_password", person="ada", password=LOGIN)


def noted(crm: Crm) -> list[Any]:
    """The notes that the service was asked for."""
    return [one["body"] for one in crm.seen if one["path"].endswith("/notes") and one["body"] is not None]


@proves("R-TOOL-12", part="a sealed value that is read back")
def test_a_sealed_value_that_is_read_back_agrees_with_what_was_sent(
    world: World, crm: Crm, company: Company, settings: Settings
) -> None:
    declare(world, takes(crm))
    letter = called("mail.send", to="ada@example.org", subject="Your word", text=WORDS, reference="R-1")
    model = Scripted(calls(SET), calls(letter))
    with company_at(company.url), foreign(settings, model):
        run = world.submit("tool-loop", "Set ada's word, and tell ada@example.org of it.")
        onwards(world, run)
        for _ in range(2):
            world.decide(world.open_requests(run)[0], world.people.approver)
            onwards(world, run)
    found = {one["call"]: one for one in world.said(run, "call_verified")}
    assert [one["verdict"] for one in found.values()] == ["verified", "verified"], found
    assert world.run(run).terminal_code == "SUCCESS"
    world.sound(run)


@proves("R-TOOL-9", part="the same call after a value of it became known as a secret")
@pytest.mark.parametrize("where", ["same run", "retry"])
def test_a_call_with_a_value_that_was_sealed_since_is_the_same_call(
    world: World, crm: Crm, settings: Settings, where: str
) -> None:
    declare(world, takes(crm))
    adds(world, crm)
    crm.status, crm.times = 500, 1
    again = [calls(SET), DOWN, calls(NOTE)] if where == "retry" else [calls(SET), calls(NOTE)]
    with foreign(settings, Scripted(calls(NOTE), *again, said("Done."))):
        run = world.submit("tool-loop", "Set ada's word, and note it.")
        onwards(world, run)
        for tool in ("crm.add_note", "crm.change_password"):
            (request,) = world.open_requests(run)
            assert (request.kind, request.tool) == ("action", tool)
            world.decide(request, world.people.approver)
            onwards(world, run)
        if where == "retry":
            run = retried(world, run)
            onwards(world, run)
        assert kinds(world, run) == ["reconciliation"]
        to_the_end(world, run, "happened")
    assert noted(crm) == [{"text": WORDS}]
    world.sound(run)


@proves("R-TOOL-9", part="the same call after more values of it became known as secrets")
@pytest.mark.parametrize("where", ["same run", "retry"])
def test_a_call_of_which_more_was_sealed_since_is_the_same_call(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection, where: str
) -> None:
    declare(world, takes(crm))
    adds(world, crm)
    crm.status, crm.times, crm.first_plain = 500, 1, 1
    both = f"First {FIRST}, then {OTHER}."
    first = called("crm.change_password", person="ada", password=FIRST)
    note = called("crm.add_note", person="ada", text=both)
    more = called("crm.change_password", person="ada", password=OTHER)
    again = [calls(more), DOWN, calls(note)] if where == "retry" else [calls(more), calls(note)]
    with foreign(settings, Scripted(calls(first), calls(note), *again, said("Done."))):
        run = world.submit("tool-loop", "Set ada's words, and note them.")
        onwards(world, run)
        for tool in ("crm.change_password", "crm.add_note", "crm.change_password"):
            (request,) = world.open_requests(run)
            assert (request.kind, request.tool) == ("action", tool)
            world.decide(request, world.people.approver)
            onwards(world, run)
        if where == "retry":
            run = retried(world, run)
            onwards(world, run)
        assert kinds(world, run) == ["reconciliation"]
        to_the_end(world, run, "happened")
    assert noted(crm) == [{"text": both}]
    assert rows_with(superuser, FIRST) == []
    world.sound(run)


@proves("R-SEC-4", part="a sealed value is not remembered")
@proves("R-MEM-2", part="a sealed value is not remembered")
def test_a_sealed_value_goes_into_no_memory(
    world: World,
    crm: Crm,
    settings: Settings,
    superuser: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = bundled_content.load_bundled_boundaries()
    open_ = usual["tool-loop-default"].evolve(memory="propose")
    monkeypatch.setattr(
        bundled_content, "load_bundled_boundaries", lambda: {**usual, "tool-loop-default": open_}
    )
    declare(world, takes(crm))
    let_in(world, "crm", "memory", memory_writes=2)
    run: list[UUID] = []

    def remembers(_seen: Seen) -> Reply:
        with tenant_transaction(world.id):
            facts = list(state_now(run[0]).facts)
        return calls(called("memory.propose", text=f"Her word is {KEPT}.", kind="semantic", facts=facts))

    model = Scripted(
        calls(called("crm.change_password", person="ada", password=KEPT)), remembers, said("Done.")
    )
    with foreign(settings, model):
        run.append(world.submit("tool-loop", "Set ada's word, and remember it."))
        onwards(world, run[0])
        world.decide(world.open_requests(run[0])[0], world.people.approver)
        onwards(world, run[0])
    refused = [one for one in world.said(run[0], "call_checked") if one["decision"] == "deny"]
    assert [one["detail"] for one in refused] == ["the sealed value at /text is not remembered; leave it out"]
    assert rows_with(superuser, KEPT) == []
    world.sound(run[0])
