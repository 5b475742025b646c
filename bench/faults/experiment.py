"""The experiment: runs under way at each fault, then the count, the traces, and how runs change hands."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from time import monotonic, sleep
from typing import Final
from uuid import UUID

from django.db import connections

from bench.faults.effect_count import EffectCount, Ended, count_effects
from bench.faults.fault_injection import BOUND_SECONDS, FAULTS, Struck, Target, plan_faults, strike_with
from bench.faults.handover import measure_handovers
from bench.faults.processes import wait_until
from bench.faults.recovery_time import marks_now
from bench.faults.step_model import StepModel
from bench.faults.workload import Workload
from bench.thresholds import judge
from budgets.ledger_verification import verify_ledger
from orchestrator.runs.queries.replays import replay_stored_run
from tenancy.db.tenant_context import tenant_transaction
from traces.verification import verify_run

# From the last fault to the end of the last run.
END_SECONDS: Final = 180.0
SLOW_SECONDS: Final = 0.4
ENDS: Final = """
SELECT r.id::text, r.terminal_code, r.reason, r.status,
       EXISTS (SELECT 1 FROM approvals_request q WHERE q.run_id = r.id AND q.status = 'pending')
  FROM orchestrator_run r WHERE r.id = ANY(%s::uuid[])"""


def run_experiment(given: argparse.Namespace, target: Target, load: Workload, model: StepModel) -> None:
    """Load, break, count, verify, measure; print it all and judge it."""
    load.furnish()
    # No fault is to meet a connection that this process keeps.
    connections.close_all()
    load.start_reviewer()
    began = monotonic()
    struck = _load_under_faults(given, target, load)
    ended = _wait_for_the_ends(target, load)
    _print_faults(struck)
    judge(
        f"every run under way at a fault had another event within {BOUND_SECONDS:.0f} s",
        held=all(one.recovery.is_complete for one in struck),
    )
    _judge_count(count_effects(ended, load.performed()), ended)
    verified = _verified(load)
    judge(f"traces, ledgers and replays verified: {verified} of {len(ended)}", held=verified == len(ended))
    print(f"  {monotonic() - began:.0f} s of load and faults", flush=True)
    if not given.load_only:
        print("\nhow runs change hands")
        measure_handovers(target, load, model)
        ended = _wait_for_the_ends(target, load)
        _judge_count(count_effects(ended, load.performed()), ended)


def _load_under_faults(given: argparse.Namespace, target: Target, load: Workload) -> list[Struck]:
    """Submit a share of the runs before each fault, and strike while some are under way."""
    faults = plan_faults(load.chance, tuple(given.fault or FAULTS))
    load.service.journal.tell(slow=SLOW_SECONDS, sabotage=given.sabotage)
    for service in ("tickets", "mail", "ledger"):
        load.company.faults(service, "slow", seconds=SLOW_SECONDS, on="writes")
    shares = [given.runs // len(faults) + (n < given.runs % len(faults)) for n in range(len(faults))]
    struck = []
    for fault, share in zip(faults, shares, strict=True):
        load.submit(share)
        _wait_for_work(target, share)
        sleep(load.chance.uniform(0.0, 1.0))
        _wait_for_work(target, 1)
        struck.append(strike_with(target, fault))
        print(
            f"  {fault}: {struck[-1].recovery.longest:.1f} s, whole after {struck[-1].whole_after:.1f} s",
            flush=True,
        )
    return struck


def _wait_for_work(target: Target, share: int) -> None:
    """Wait until half of what was submitted is under way, or has been."""
    with suppress(TimeoutError):
        wait_until(lambda: 2 * len(marks_now(target.database)) >= share, "", patience=5.0)


def _wait_for_the_ends(target: Target, load: Workload) -> list[Ended]:
    """Wait until every accepted run has ended, for a bounded time; how each stands then."""
    until, found = monotonic() + END_SECONDS, list[Ended]()
    while monotonic() < until:
        found = _ends(target, load)
        if all(one.code for one in found):
            break
        sleep(0.5)
    return found


def _ends(target: Target, load: Workload) -> list[Ended]:
    rows = {str(row[0]): row for row in target.database.rows(ENDS, list(load.accepted)) or []}
    found = []
    for run, job in load.accepted.items():
        _, code, reason, status, asked = rows.get(run, (run, "", "", "absent", False))
        waits = bool(asked) or status == "paused"
        found.append(
            Ended(run=run, tags=tuple(job.steps), code=str(code), reason=str(reason), at_a_person=waits)
        )
    return found


def _verified(load: Workload) -> int:
    """Return how many runs have a trace and a ledger that verify, and a replay with the same records."""
    assert load.tenant is not None
    whole = 0
    for run in map(UUID, load.accepted):
        with tenant_transaction(load.tenant):
            faults = [*verify_run(run), *verify_ledger(run, open_effects=())]
        whole += not faults and replay_stored_run(load.tenant, run).matches
    connections.close_all()
    return whole


def _print_faults(struck: Sequence[Struck]) -> None:
    """Print, for each kind of fault, how long the runs under way took until they went on."""
    print(f"\n  {'fault':38}{'runs':>6}{'p50, s':>9}{'max, s':>9}{'all there, s':>14}")
    for fault in dict.fromkeys(one.fault for one in struck):
        of_kind = [one for one in struck if one.fault == fault]
        seconds = [second for one in of_kind for second in one.recovery.seconds]
        runs = sum(one.recovery.runs for one in of_kind)
        middle, longest = (median(seconds), max(seconds)) if seconds else (0.0, 0.0)
        whole = max(one.whole_after for one in of_kind)
        print(f"  {fault:38}{runs:6}{middle:9.1f}{longest:9.1f}{whole:14.1f}")


def _judge_count(count: EffectCount, runs: Sequence[Ended]) -> None:
    """Print and judge what was lost, doubled, stuck or failed."""
    print(f"\n  {len(runs)} runs, {count.effects} effects at the services")
    for name in ("lost", "doubled", "stuck", "failed"):
        found: tuple[str, ...] = getattr(count, name)
        judge(f"{name}: {len(found)}{': ' if found else ''}{', '.join(found[:10])}", held=not found)
