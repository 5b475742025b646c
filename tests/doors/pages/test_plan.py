"""The Plan tab of a run's page: steps with what each waits for, criteria, graph (R-UI-3)."""

import re
from uuid import UUID

import pytest
from pytest_django import Settings

from orchestrator.console.queries.plans import Plan
from orchestrator.console.views.fragments import run_fragments
from orchestrator.console.views.run_plan import BEFORE, MOST, build_plan_context
from orchestrator.core.common.goal import Criterion
from orchestrator.core.readmodel.run_plan import PlanStep, RunPlan, StepStanding
from orchestrator.runs.actions import run_signals
from tests.doors.pages.people import HOSTILE, at, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.doubles.openai_server import Call
from tests.factories.foreign import REFUND_AND_LOOK_UPS, Obedient, foreign, onwards
from tests.factories.hostile import hostile
from tests.factories.retrying import retried
from tests.factories.world import World, company_at
from tests.proves import proves

TAGS = re.compile(r"<[^>]+>")


def plan(world: World, run: UUID) -> str:
    """The tab as an auditor reads it."""
    return text(at(world.people.auditor).get(f"/runs/{run}", {"tab": "plan"}))


def steps(page: str) -> list[str]:
    """Each step in words, in order."""
    parts = re.split(r'<li id="step-', page.partition('id="run-plan"')[2].partition("</section>")[0])[1:]
    return [" ".join(TAGS.sub(" ", f"<{part}").split()) for part in parts]


@proves("R-UI-3", part="plan with dependency state")
def test_a_refund_at_its_gate_says_who_is_awaited_and_what_comes_after(
    world: World, company: Company
) -> None:
    run = refund(world, company)
    page = plan(world, run)
    found = steps(page)
    assert [one.split()[0:3] for one in found] == [
        ["1", "Done", "orders.lookup"], ["2", "Done", "policy.evaluate"], ["3", "Waits", "payments.refund"],
        ["4", "Ahead", "The"], ["5", "Ahead", "mail.send"],
    ]  # fmt: skip
    assert "Waits for people to decide, until" in found[2]
    assert "After step 3 , if the run comes this way." in found[3]
    assert "People decide before it is sent." in found[4]
    (asked,) = world.open_requests(run)
    shown = page.split('id="run-plan"')[1]
    assert f'href="/approvals/{asked.id}"' in shown
    assert 'href="?tab=facts' not in shown
    assert f'href="/runs/{run}?tab=facts&amp;fact=order"' in shown
    assert re.search(rf'href="/runs/{run}/rows/\d+"', shown)
    # What waits stands under what holds it, and what is meant by a number is on the page.
    assert shown.index('aria-label="Behind step 3"') < shown.index('id="step-node-draft"')
    assert 'href="#step-node-refund"' in shown
    assert "fact_committed" in shown


@proves("R-UI-3", part="plan with dependency state")
def test_of_several_calls_in_one_reply_two_stand_behind_the_gated_one(
    world: World, company: Company, settings: Settings
) -> None:
    with foreign(settings, Obedient(*REFUND_AND_LOOK_UPS)), company_at(company.url):
        run = world.submit("tool-loop", "Refund order A-1001: 10.00 EUR, broken. Look up A-1001 and A-1003.")
        onwards(world, run)
        found = steps(plan(world, run))
        assert [one.split()[:3] for one in found] == [
            ["1", "Waits", "payments.refund"], ["2", "Behind", "orders.lookup"],
            ["3", "Behind", "orders.lookup"], ["4", "Behind", "The"],
        ]  # fmt: skip
        assert "asked for by the model" in found[0]
        assert "After step 1" in found[1]
        assert "After step 2 and step 3" in found[3]
        world.approve_all(run)
    ended = plan(world, run)
    assert [one.split()[:2] for one in steps(ended)] == [["1", "Done"]]
    assert "The run is over" in ended


def test_a_refused_run_says_what_was_done_and_what_is_left_out(world: World, company: Company) -> None:
    run = refund(world, company)
    (asked,) = world.open_requests(run)
    with company_at(company.url):
        world.decide(asked, world.people.approver, "reject", reason="No.")
        world.drive(run)
    found = steps(plan(world, run))
    assert [one.split()[1] for one in found] == ["Done", "Done", "Refused", "Left", "Left"]
    assert "A person said no." in found[2]
    assert "It was not done." in found[4]


def test_a_run_that_failed_says_at_which_step(world: World, company: Company) -> None:
    run = refund(world, company, whole=True, order_id="A-9999")
    assert world.run(run).status == "failed"
    found = steps(plan(world, run))
    assert found[0].split()[1:3] == ["Failed", "orders.lookup"]
    assert {one.split()[1] for one in found[1:]} == {"Left"}


def test_a_cancelled_run_leaves_out_what_it_had_before_it(world: World, company: Company) -> None:
    run = refund(world, company)
    run_signals.cancel(world.id, run, by=world.people.operator.id, reason="enough")
    world.drive(run)
    assert [one.split()[1] for one in steps(plan(world, run))] == ["Done", "Done", "Left", "Left", "Left"]


def test_a_retry_says_where_what_came_before_it_is(world: World, company: Company) -> None:
    before = refund(world, company)
    run_signals.cancel(world.id, before, by=world.people.operator.id, reason="enough")
    world.drive(before)
    page = plan(world, run := retried(world, before))
    assert [one.split()[1] for one in steps(page)][:2] == ["Done", "Done"]
    assert f'<a href="/runs/{before}" id="plan-before">the run it goes on from</a>' in page
    # Those calls are no rows of this run.
    assert 'id="call-of-step-node-lookup"' not in page
    assert f'href="/runs/{run}?tab=facts&amp;fact=order"' in page
    assert "the run it goes on from" not in plan(world, before)


def test_no_two_elements_of_a_plan_have_the_same_id_and_lists_are_told_as_such(
    world: World, company: Company
) -> None:
    page = plan(world, refund(world, company)).split('id="run-plan"')[1]
    found = re.findall(r' id="([^"]+)"', page)
    assert len(found) == len(set(found))
    links = re.findall(r"<a [^>]*>", page.partition("</section>")[0])
    assert links
    assert [one for one in links if " id=" not in one] == []
    lists = re.findall(r'<[ou]l class="plan[^>]*>', page)
    assert len(lists) == 3
    assert [one for one in lists if 'role="list"' not in one] == []


def test_before_a_worker_takes_it_all_lies_ahead_and_when_it_ends_nothing_does(
    world: World, company: Company
) -> None:
    queued = world.submit("support-refund", "Refund order A-1001", inputs={"order_id": "A-1001"})
    assert {one.split()[1] for one in steps(plan(world, queued))} == {"Ahead"}
    run = refund(world, company, whole=True)
    page = plan(world, run)
    assert {one.split()[1] for one in steps(page)} == {"Done"}
    assert page.count(">Met</span>") == page.count("fact_committed")


def test_criteria_of_the_goal_are_told_from_those_of_the_workflow(world: World) -> None:
    criteria = (Criterion(validator="contains", parameters={"text": HOSTILE[:60]}),)
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?", acceptance=criteria)
    page = plan(world, run)
    assert "Not looked at yet" in page
    assert "of the goal" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize("tab", ["plan", "graph"])
def test_the_address_of_former_days_goes_on_working(world: World, company: Company, tab: str) -> None:
    run = refund(world, company)
    page = text(at(world.people.auditor).get(f"/runs/{run}", {"tab": tab}))
    assert 'data-view="plan"' in page
    assert 'id="run-graph"' in page
    assert 'aria-current="page" data-key="2" data-key-label="Plan"' in page
    assert 'href="#node-refund"' in page
    assert 'id="node-refund"' in page


def test_a_tool_that_nobody_has_is_shown_as_the_text_it_is(
    world: World, company: Company, settings: Settings
) -> None:
    name = hostile("C-nobody", 200)
    with foreign(settings, Obedient(Call(name, {}, "b1"), *REFUND_AND_LOOK_UPS)), company_at(company.url):
        run = world.submit("tool-loop", "Refund order A-1001: 10.00 EUR, broken.")
        onwards(world, run)
    page = plan(world, run)
    assert "C-nobody" in page
    assert "<script>alert" not in page
    first = steps(page)[0]
    assert first.split()[1] == "Refused"
    assert "There is no such tool." in first
    fragment = run_fragments(world.id, run, "0", ("read",), "plan").html
    assert "C-nobody" in fragment
    assert "<script>alert" not in fragment


def test_of_many_steps_so_many_are_drawn_and_the_rest_is_counted() -> None:
    of = [StepStanding.DONE] * 100 + [StepStanding.WAITING] + [StepStanding.BEHIND] * 99
    many = tuple(
        PlanStep(
            id=f"call-c{n}", kind="call", name="t", by="model", call=f"c{n}", standing=one,
            after=(f"call-c{n - 1}",) if one is StepStanding.BEHIND else (),
        )
        for n, one in enumerate(of, 1)
    )  # fmt: skip
    drawn = build_plan_context(Plan(outlook=RunPlan(steps=many), path=(), rows={}))
    tops = drawn["steps"]
    assert (drawn["earlier_steps"], drawn["later_steps"]) == (100 - BEFORE, 100 - MOST + BEFORE)
    assert sum(1 + len(one.behind) for one in tops) == MOST
    assert dict(drawn["counts"]) == {"done": 100, "waiting": 1, "behind": 99}
    assert tops[-1].behind[0].after[0].anchor == "step-call-c101"
