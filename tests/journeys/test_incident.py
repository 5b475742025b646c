"""An incident from its first look to its diagnosis, as the demo company's own log has it."""

from contextlib import nullcontext
from decimal import Decimal
from typing import Any
from unittest.mock import patch
from uuid import UUID

import orjson
import psycopg
import pytest
from pytest_django import Settings

from approvals.core.errors import DecisionInvalid
from approvals.models import Request
from orchestrator import bundled_content
from orchestrator.commit.approval_timers import expire_gates_of
from orchestrator.core.calls.authorization import CallAuthorizer
from orchestrator.publishing.actions.versions import publish_boundary
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.openai_server import Call, OpenAIServer, calls, said
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, company_at, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves


def reported(world: World, service: str = "checkout") -> UUID:
    """An incident that nobody has looked at yet."""
    return world.submit("incident-triage", "Find out what is wrong.", inputs={"service": service})


def at_the_gate(world: World, service: str = "checkout") -> tuple[UUID, Request]:
    """A triage that waits for a person's word on a restart."""
    run = reported(world, service)
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    return run, request


def restarts(company: Company) -> list[str]:
    """What was restarted, by the company's own log."""
    return [effect["body"]["service"] for effect in company.effects("services")]


def diagnosis(world: World, run: UUID) -> dict[str, Any]:
    """The typed answer."""
    found: dict[str, Any] = world.result(run)["output"]
    return found


def ail(company: Company, service: str, cause: str) -> None:
    """Set what ails a service."""
    company.http.put(company.url + "/incidents", json={"service": service, "cause": cause}).raise_for_status()


@proves("R-APPR-1", part="a restart")
@proves("R-TOOL-12", part="a restart is read back")
@pytest.mark.parametrize("service", ["checkout", "web-shop"])
def test_a_restart_waits_for_a_person_and_is_looked_at_afterwards(
    world: World, company: Company, service: str
) -> None:
    run, request = at_the_gate(world, service)
    assert company.effects() == []
    packet = orjson.loads(bytes(request.packet))
    assert packet["tool"]["effect"].startswith("Restart the service checkout: Its log says")
    assert packet["who"]["queue"] == "operations"
    world.decide(request, world.people.approver)
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("completed", "SUCCESS"), found.reason
    assert restarts(company) == ["checkout"]
    told = diagnosis(world, run)
    assert (told["service"], told["action"], told["healthy"]) == ("checkout", "restarted", True)
    assert company.get("/services/checkout")["healthy"]
    world.sound(run)


@proves("R-APPR-3", part="a refused restart")
@proves("R-GRAPH-15", part="a part of the goal")
def test_a_refused_restart_leaves_the_diagnosis(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver, "reject", reason="Not during the sale.")
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("completed", "PARTIAL_SUCCESS"), found.reason
    told = diagnosis(world, run)
    assert (told["action"], told["healthy"], world.result(run)["partial"]) == ("refused", False, True)
    assert company.effects() == []
    assert company.get("/services/checkout")["instance"] == "checkout-1"
    world.sound(run)


@proves("R-APPR-3", part="revise: a restart is asked about, answered and approved")
@proves("R-APPR-2", part="what was said and answered stands in the next packet")
def test_a_restart_that_is_asked_about_is_proposed_anew(world: World, company: Company) -> None:
    run, first = at_the_gate(world)
    world.decide(first, world.people.approver, "revise", reason="Why is a restart the cure?")
    assert world.drive(run).status == "awaiting_gate"
    (again,) = world.open_requests(run)
    packet = orjson.loads(bytes(again.packet))
    assert packet["proposal"]["previous"] == str(first.id)
    assert packet["proposal"]["words"] == ["Why is a restart the cure?"]
    assert packet["proposal"]["answer"].startswith("Because of what its log says")
    assert packet["previous_arguments"] != packet["arguments"]
    assert restarts(company) == []
    world.decide(again, world.people.approver)
    assert world.drive(run).terminal_code == "SUCCESS"
    assert restarts(company) == ["checkout"]
    told = [said["decision"] for said in world.said(run, "approval_decided")]
    assert told == ["revise", "approve"]
    world.sound(run)


@proves("R-APPR-3", part="revise: bounded in a run")
def test_a_restart_is_sent_back_twice_and_not_a_third_time(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    for words in ("Why?", "Is there no other way?"):
        world.decide(request, world.people.approver, "revise", reason=words)
        world.drive(run)
        (request,) = world.open_requests(run)
    with pytest.raises(DecisionInvalid, match="the last of 3 proposals"):
        world.decide(request, world.people.approver, "revise", reason="And now?")
    world.decide(request, world.people.approver, "reject", reason="Not during the sale.")
    assert world.drive(run).terminal_code == "PARTIAL_SUCCESS"
    assert diagnosis(world, run)["action"] == "refused"
    assert company.effects() == []
    world.sound(run)


@proves("R-APPR-7", part="nobody answers about a restart")
def test_a_restart_that_nobody_decides_on_is_not_made(
    world: World, company: Company, superuser: psycopg.Connection
) -> None:
    run, _ = at_the_gate(world)
    Clock(superuser).gates_expire(run)
    expire_gates_of(run)
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("expired", "CONFIRM_REQUIRED")
    assert company.effects() == []
    world.sound(run)


def test_a_faulty_deploy_is_not_restarted(world: World, company: Company) -> None:
    run = reported(world, "search")
    assert world.drive(run).terminal_code == "SUCCESS"
    told = diagnosis(world, run)
    assert (told["service"], told["action"], told["status"]) == ("search", "none", "degraded")
    assert world.said(run, "approval_requested") == []
    assert company.effects() == []


def test_a_service_that_is_well_is_left_alone(world: World, company: Company) -> None:
    run = reported(world, "stock")
    assert world.drive(run).terminal_code == "SUCCESS"
    assert diagnosis(world, run)["healthy"]
    assert company.effects() == []


def test_a_restart_that_did_not_help_is_not_called_a_cure(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    ail(company, "checkout", "bad_deploy")
    world.decide(request, world.people.approver)
    assert world.drive(run).terminal_code == "SUCCESS"
    told = diagnosis(world, run)
    assert (told["action"], told["healthy"], told["status"]) == ("restarted", False, "degraded")
    assert restarts(company) == ["checkout"]


@proves("R-TOOL-9", part="a restart honours its key")
def test_a_restart_whose_answer_was_lost_is_made_once(world: World, company: Company) -> None:
    company.faults("services", "commit_then_fail", times=1)
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver)
    assert onwards(world, run).terminal_code == "SUCCESS"
    assert restarts(company) == ["checkout"]
    world.sound(run)


WALLS = {"none": (), "gate": ("gate",), "allowance": ("allowance",), "both": ("gate", "allowance")}


@proves("SABOTAGE", part="restart")
@pytest.mark.parametrize("fallen", WALLS)
def test_a_restart_without_a_person_takes_both_walls_down(
    world: World, company: Company, fallen: str
) -> None:
    """The gate by risk class, and the allowance of no change without a grant: either holds alone."""
    shipped = bundled_content.get_bundled_boundary("incident-triage")
    loose = shipped.evolve(slug="loose", budget={**shipped.budget, "side_effects": Decimal(1)})
    with tenant_transaction(world.id):
        publish_boundary(world.id, loose, by=None)
    slug = "loose" if "allowance" in WALLS[fallen] else "incident-triage"
    run = world.submit("incident-triage", "Find it out.", inputs={"service": "checkout"}, boundary=slug)
    ungated = (
        patch.object(CallAuthorizer, "is_gated", lambda _: False)
        if "gate" in WALLS[fallen]
        else nullcontext()
    )
    with ungated:
        world.drive(run)
    assert restarts(company) == (["checkout"] if fallen == "both" else [])


# -- a model of somebody else's -----------------------------------------------------------------------------

LOOK = calls(Call("services_status", {"service": "checkout"}, "call_1"))
RESTART = calls(Call("services_restart", {"service": "checkout", "reason": "It hangs."}, "call_2"))
AGAIN = calls(Call("services_restart", {"service": "checkout", "reason": "Please."}, "call_3"))


def answered(*, healthy: bool, action: str, status: str, fact: str = "f1") -> Any:
    """A reply with a diagnosis."""
    evidence = [{"claim": "Its status.", "facts": [fact]}]
    document = {
        "service": "checkout", "status": status, "healthy": healthy, "cause": "Unknown.",
        "evidence": evidence, "action": action, "next_step": "Look again.",
    }  # fmt: skip
    return said(orjson.dumps(document).decode())


@proves("R-TOOL-5", part="a restart that was refused is not made")
def test_a_model_that_asks_again_and_again_restarts_nothing(
    house: House, company: Company, settings: Settings
) -> None:
    with company_at(company.url), foreign(settings, OpenAIServer(LOOK, RESTART, AGAIN)):
        world = make_world(house)
        run = reported(world)
        found = onwards(world, run)
        for _ in range(2):
            (request,) = world.open_requests(run)
            world.decide(request, world.people.approver, "reject", reason="No.")
            found = onwards(world, run)
    assert (found.status, found.terminal_code) == ("rejected", "CONFIRM_REQUIRED")
    assert company.effects() == []
    world.sound(run)


LIES = [
    (answered(healthy=True, action="none", status="healthy"), "/healthy is not False"),
    (answered(healthy=False, action="restarted", status="down"), "no fact shows it"),
    (answered(healthy=False, action="none", status="down", fact="f7"), "f7 is no committed fact"),
]


@proves("R-LOOP-6", part="a diagnosis that was not read")
@pytest.mark.parametrize(("lie", "fault"), LIES, ids=["well", "done", "unread"])
def test_a_diagnosis_says_only_what_was_read_and_done(
    house: House, company: Company, settings: Settings, lie: Any, fault: str
) -> None:
    truth = answered(healthy=False, action="none", status="down")
    with company_at(company.url), foreign(settings, OpenAIServer(LOOK, lie, truth)):
        world = make_world(house)
        run = reported(world)
        found = onwards(world, run)
    assert found.terminal_code == "SUCCESS", found.reason
    (failed,) = [one for one in world.said(run, "output_verified") if one["verdict"] == "failed"]
    assert fault in failed["detail"]


@proves("R-TOOL-12", part="looked at again after a restart")
def test_a_restarted_service_is_not_called_well_before_it_is_read_again(
    house: House, company: Company, settings: Settings
) -> None:
    hasty = answered(healthy=False, action="restarted", status="down")
    after = calls(Call("services_status", {"service": "checkout"}, "call_4"))
    truth = answered(healthy=True, action="restarted", status="healthy", fact="f3")
    with company_at(company.url), foreign(settings, OpenAIServer(LOOK, RESTART, hasty, after, truth)):
        world = make_world(house)
        run = reported(world)
        onwards(world, run)
        (request,) = world.open_requests(run)
        world.decide(request, world.people.approver)
        found = onwards(world, run)
    assert found.terminal_code == "SUCCESS", found.reason
    (failed,) = [one for one in world.said(run, "output_verified") if one["verdict"] == "failed"]
    assert "must be read again after services.restart" in failed["detail"]
    assert restarts(company) == ["checkout"]
    world.sound(run)
