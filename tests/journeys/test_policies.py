"""A policy that changes while a run waits for people."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from orchestrator.core.policy.rules import SHIPPED, Policy, Rule
from orchestrator.policies.actions.policy_versions import ChangeAuthor, change_policy
from orchestrator.policies.queries.policies import scope_held
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.company import company as company
from tests.factories.foreign import Obedient, called, foreign, onwards
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

ADA = "ada@example.org"
SHUT = Rule(name="no-mail", decision="deny", reason="Nobody writes today.", tools=("mail.send",))


@pytest.fixture
def world(house: House, company: Company, settings: Settings) -> Iterator[World]:
    """A furnished house whose model writes to Ada when it is asked anything."""
    model = Obedient(called("mail.send", to=ADA, subject="Thanks", text="Thank you."))
    with company_at(company.url), foreign(settings, model):
        yield make_world(house)


def tighten(world: World, policy: Policy) -> None:
    """Make this the policy."""
    who = ChangeAuthor(principal=fresh_id(), owner=fresh_id())
    assert change_policy(world.id, policy, expected=None, who=who, reason="An incident").proposal is None


@proves("R-TOOL-4", part="a stricter policy reaches a run that waits")
@proves("R-TOOL-17", part="a stricter policy reaches a run that waits")
def test_a_policy_that_was_tightened_meanwhile_stops_the_call_in_spite_of_its_approval(
    world: World, company: Company
) -> None:
    run = world.submit("tool-loop", f"Thank {ADA}.")
    onwards(world, run)
    (request,) = world.open_requests(run)
    tighten(world, SHIPPED.evolve(rules=(SHUT, *SHIPPED.rules)))
    world.decide(request, world.people.approver)
    onwards(world, run)
    assert company.effects("mail") == []
    checked = [said for said in world.said(run, "call_checked") if said["step"] == "provenance"]
    assert [said["rule"] for said in checked] == ["policy:0:unvouched", "policy:1:no-mail"]
    assert checked[-1]["decision"] == "deny"
    world.sound(run)


def test_a_policy_that_was_tightened_elsewhere_changes_nothing_for_the_call(
    world: World, company: Company
) -> None:
    run = world.submit("tool-loop", f"Thank {ADA}.")
    onwards(world, run)
    other = SHUT.evolve(name="no-ledger", tools=("ledger.*",))
    tighten(world, SHIPPED.evolve(rules=(other, *SHIPPED.rules)))
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver)
    onwards(world, run)
    assert len(company.effects("mail")) == 1
    world.sound(run)


@proves("R-TOOL-17", part="the scope is pinned with the manifest")
def test_a_run_is_pinned_to_its_scope_and_to_the_policy_of_its_admission(world: World) -> None:
    before = world.submit("tool-loop", f"Thank {ADA} for order A-1001.")
    tighten(world, SHIPPED.evolve(rules=(SHUT, *SHIPPED.rules)))
    after = world.submit("tool-loop", "Thank nobody.")
    with tenant_transaction(world.id):
        first, second = scope_held(before), scope_held(after)
    assert (first.scope.recipients, first.scope.references) == ((ADA,), ("a-1001",))
    assert [one.policy.version for one in (first, second)] == [0, 1]
    assert second.scope.empty
