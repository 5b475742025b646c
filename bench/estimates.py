"""How often the interval holds what a run really went on to need, on the shipped workflows (R-BUDGET-4).

`python -m bench estimates` lets each shipped workflow come to its result a number of times and learn from it,
then runs it with goals that it has not seen: before every effect of those runs it compares the bounds that
stood on the page with what the run used from there to its end, and says how wide they were beside it. Then it
submits each workflow with one model call, or one tool call, less than it needs at the least, and says what
was spent before the stop. Judged are both: nine steps in ten hold the rest, and nobody spends the last call
of what cannot suffice. A wide enough interval holds anything: half of them are no wider than the rest itself.
What nothing is known of counts for nothing: of each workflow most steps have bounds, or the bench fails.
"""

import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import cycle, islice
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import UUID

import httpx2
import orjson
import psycopg

from approvals.actions import DecisionInput, decide_request
from approvals.core.lifecycle import DecisionKind
from approvals.models import Request
from bench.thresholds import judge
from budgets.core.statistics.forecast import Interval
from orchestrator import bundled_content
from orchestrator.core.accounting.effect_cost import ZERO
from orchestrator.core.accounting.remaining_estimate import compute_remaining_bounds
from orchestrator.core.common.goal import Goal
from orchestrator.core.domain.run_state import RunState
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from orchestrator.runs.actions.usage_learning import expected_for, learn_from, lived_of, subject_of_run
from orchestrator.runs.models.run import Intent, ManifestRow, Run
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from orchestrator.worker.process import make_worker
from orchestrator.worker.run_loop import Worker
from tenancy.actions import add_member, add_person, create_tenant, principal_of
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Principal
from traces.core.state_patch import apply_patch
from traces.models import Record, Snapshot

LEARN, MEASURE = 20, 12
HELD = 0.9
KNOWN = 0.5
WIDEST = Decimal(1)
# More goals, for workflows that are shipped with too few: what is written, and what stands for it.
MORE: dict[str, tuple[str, tuple[str, ...]]] = {
    "order-fulfilment": ("A-1006", ("A-1012", "A-1015", "A-1013", "A-1014")),
    "support-ticket": ("A-1001", ("A-1006", "A-1012", "A-1003", "A-1010")),
    "tool-loop": ("3 *", ("5 *", "12 *", "7 *", "40 *")),
}
FEWEST = ("model_turns", "tool_calls")


class Place(NamedTuple):
    """Who submits where, who approves, and the worker."""

    tenant: UUID
    submitter: Principal
    approvers: tuple[Principal, Principal]
    worker: Worker


def measure(superuser: psycopg.Connection) -> None:
    """Learn, measure, print."""
    del superuser
    with _company() as url:
        os.environ["INTERLOCK_DEMO_URL"] = url
        place = _house()
        tally = Tally(Counter(), Counter(), defaultdict(list))
        for slug in sorted(bundled_content.load_bundled_workflows()):
            came: list[Goal] = []
            learnt, unseen = apart(goals_of(slug))
            for goal in islice(cycle(learnt), LEARN):
                run = _ended(place, slug, goal)
                learn_from(run.id)
                came += [goal] if run.terminal_code == "SUCCESS" else []
            before = Counter(tally.steps)
            for goal in islice(cycle(unseen), MEASURE):
                run = _ended(place, slug, goal)
                if run.terminal_code == "SUCCESS":
                    count(tally, _seen(place, run))
            _judge(known(slug, tally.steps - before))
            if judge(f"{slug} comes to its result", held=bool(came)):
                _stopped(place, slug, came[0])
        _print(tally)


class Seen(NamedTuple):
    """A dimension's bounds before an effect, and what the rest really was."""

    name: str
    interval: Interval
    rest: Decimal


class Tally(NamedTuple):
    """How many steps there were (`all`), how many of them had bounds (`bounded`), and of how many of those
    every bound held (`whole`); how many bounds held by dimension, and how wide each was in parts of the
    rest."""

    steps: Counter[str]
    held: Counter[str]
    widths: dict[str, list[Decimal]]


class Verdict(NamedTuple):
    """What is judged, and whether it held."""

    what: str
    held: bool


def known(slug: str, steps: Counter[str]) -> Verdict:
    """Whether most of a workflow's steps had any bounds to hold."""
    share = steps["bounded"] / max(1, steps["all"])
    what = (
        f"{slug}: bounds at {steps['bounded']} of {steps['all']} steps, bound {KNOWN:.0%}; "
        f"all held at {steps['whole']}"
    )
    return Verdict(what, steps["all"] > 0 and share > KNOWN)


def whole(steps: Counter[str]) -> Verdict:
    """Whether every bound held at enough of the steps that had any."""
    share = steps["whole"] / max(1, steps["bounded"])
    return Verdict(
        f"steps with every bound held {share:.1%}, bound {HELD:.0%}", steps["bounded"] > 0 and share >= HELD
    )


def narrow(widths: Mapping[str, list[Decimal]]) -> Verdict:
    """Whether half of the intervals are no wider than what they held, or were to hold."""
    every = [width for each in widths.values() for width in each]
    found = median(every) if every else Decimal(0)
    return Verdict(f"median width {found:.2f} of the rest, bound {WIDEST}", bool(every) and found <= WIDEST)


def apart(goals: Sequence[Goal]) -> tuple[Sequence[Goal], Sequence[Goal]]:
    """The goals to learn from and those to measure with. Raises ValueError where there is but one."""
    if len(goals) < 2:
        raise ValueError("One goal is not enough: what is measured must not be what was learnt.")
    return goals[::2], goals[1::2]


def count(tally: Tally, steps: Iterable[list[Seen]]) -> None:
    """Count steps; one without bounds has held nothing."""
    for seen in steps:
        tally.steps["all"] += 1
        tally.steps["bounded"] += bool(seen)
        tally.steps["whole"] += bool(seen) and all(one.interval.within(one.rest) for one in seen)
        for one in seen:
            assert one.interval.upper is not None
            tally.held[one.name] += one.interval.within(one.rest)
            width = one.interval.upper - one.interval.lower
            tally.widths[one.name].append(width / one.rest if one.rest else width)


def _print(tally: Tally) -> None:
    steps, known = tally.steps["all"], sum(len(widths) for widths in tally.widths.values())
    print(f"steps measured              {steps:6d}")
    print(f"steps with bounds           {tally.steps['bounded']:6d}")
    for name, widths in tally.widths.items():
        share = tally.held[name] / len(widths)
        print(f"  {name:<22}{share:8.1%} of {len(widths)} held, {median(widths):6.2f} of the rest wide")
    print(f"bounds that held            {sum(tally.held.values()) / max(1, known):8.1%}")
    _judge(whole(tally.steps))
    _judge(narrow(tally.widths))


def _judge(verdict: Verdict) -> None:
    judge(verdict.what, held=verdict.held)


def _seen(place: Place, run: Run) -> Iterator[list[Seen]]:
    """For each effect of a run the dimensions with known bounds."""
    with tenant_transaction(place.tenant):
        body, pinned = ManifestRow.objects.values_list("body", "pins_digest").get(id=run.id)
        manifest = manifest_of(bytes(body), pins_of(place.tenant, pinned))
        graph, lived = graph_of(place.tenant, run.workflow_version_id), lived_of(run)
        intents = Intent.objects.filter(run_id=run.id).order_by("record", "id")
        records = list(intents.values_list("record", flat=True))
        states = _states(run, frozenset(records))
    for record, passed in zip(records, lived.passed, strict=False):
        found = compute_remaining_bounds(graph, manifest, states[record], passed.key)
        yield [
            Seen(name, interval, lived.used.get(name, ZERO) - passed.used.get(name, ZERO))
            for name, interval in found.items()
            if interval.upper is not None
        ]


def _states(run: Run, wanted: frozenset[int]) -> dict[int, RunState]:
    plain = orjson.loads(bytes(Snapshot.objects.get(run_id=run.id, number=0).state))
    found = {}
    for number, body in Record.objects.filter(run_id=run.id).order_by("number").values_list("number", "body"):
        plain = apply_patch(plain, orjson.loads(bytes(body))["patch"])
        if number in wanted:
            found[number] = RunState.model_validate(plain)
    return found


def _stopped(place: Place, slug: str, goal: Goal) -> None:
    """Submit with one less than what is needed at the least; print what was spent of it."""
    with tenant_transaction(place.tenant):
        like = Run.objects.filter(workflow=slug, terminal_code="SUCCESS").latest("created_at")
        subject = subject_of_run(like)
        least = expected_for(subject).least
    needed = needs(least)
    judge(f"{slug}: enough of its runs came to a result to foretell another", held=bool(needed))
    for name, amount in needed.items():
        run = _ended(place, slug, goal, budget={name: amount - 1})
        with tenant_transaction(place.tenant):
            used = lived_of(run).used.get(name, ZERO)
        given = amount - 1
        ended = f"{run.terminal_code} after {used} of them"
        stopped = run.terminal_code == "BUDGET_EXHAUSTED" and used <= max(ZERO, given - 1)
        judge(f"{slug} needs {amount} {name}, was given {given}: {ended}", held=stopped)


def needs(least: Mapping[str, Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """What a run needs at the least of model and tool calls, from its first place on; nothing where too few
    were seen."""
    first = max(least.values(), key=lambda found: found["steps"], default={})
    return {name: first[name] for name in FEWEST if name in first and first[name] >= 1}


def _ended(place: Place, slug: str, goal: Goal, budget: dict[str, Decimal] | None = None) -> Run:
    """A run driven to its end at a company as it was at first: an order is refunded or sent off but once.
    People say yes to all it asks but to more budget."""
    httpx2.post(f"{os.environ['INTERLOCK_DEMO_URL']}/reset").raise_for_status()
    asked = Submission(workflow=slug, goal=goal, budget=budget or {})
    submitter = Submitter(
        principal=place.submitter.id, owner=place.submitter.owner_id, scopes=("submit", "read", "operate")
    )
    run_id = submit_task(place.tenant, submitter, asked).run
    while True:
        place.worker.advance(run_id)
        with tenant_transaction(place.tenant):
            waiting = list(Request.objects.filter(run_id=run_id, status="pending"))
            run = Run.objects.select_related("workflow_version").get(id=run_id)
        if not waiting:
            return run
        for request in waiting:
            more = request.kind == "budget"
            word = DecisionInput(kind=DecisionKind.REJECT if more else DecisionKind.APPROVE)
            for approver in place.approvers[: request.quorum]:
                decide_request(place.tenant, request.id, approver.id, word)


def goals_of(slug: str) -> tuple[Goal, ...]:
    """What a workflow is run with: the goals it is shipped with, and more of the same kind."""
    found = tuple(
        goal
        for ready in bundled_content.load_example_goals()
        if ready.workflow == slug
        for goal in ready.goals()
    )
    written, others = MORE.get(slug, ("", ()))
    first = orjson.dumps(found[0].model_dump(mode="json")).decode()
    return (*found, *(Goal.model_validate_json(first.replace(written, other)) for other in others))


def _house() -> Place:
    house = create_tenant("bench-estimates", "Bench")
    seed_tenant(house.id)
    people = []
    for name, role in (("asks", Role.OPERATOR), ("yes", Role.REVIEWER), ("too", Role.REVIEWER)):
        person = add_person(f"{name}@estimates.example", name)
        add_member(house.id, person, role)
        with tenant_transaction(house.id):
            people.append(principal_of(house.id, person))
    return Place(house.id, people[0], (people[1], people[2]), make_worker())


@contextmanager
def _company() -> Iterator[str]:
    """The demo company on a port of its own."""
    with TemporaryDirectory(prefix="interlock-bench-company-") as folder:
        argv = (sys.executable, "-m", "demo", "--port", "0", "--data", folder)
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            said = process.stdout.readline().decode()
            yield f"http://127.0.0.1:{int(said.partition(',')[0].rpartition(':')[2])}"
        finally:
            process.terminate()
            process.wait(10)
