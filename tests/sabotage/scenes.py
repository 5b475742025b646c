"""The smallest scene for each safety rule. A scene prepares, takes walls down for its critical part, and
judges.

It raises Unsafe when the rule was broken and nothing else; how a standing wall refuses is the wall's own
affair.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from django.db import Error, IntegrityError

from approvals.actions import UnusableGrant, consume_grant
from approvals.core.errors import ApprovalError
from approvals.models import Request
from budgets.models import Entry
from orchestrator.commit.commit import commit_run
from orchestrator.commit.read_phase import LeaseLost
from orchestrator.core.domain.run_events import TimerFired
from orchestrator.core.tools.circuit_breaker import Setting, Ticket
from orchestrator.outbound.actions import TenantCircuits
from orchestrator.runs.actions.emergency_stop import lift_stop, stop_everything
from orchestrator.runs.models.run import Run
from orchestrator.worker.effects.run_loader import load_claimed_run
from orchestrator.worker.leases import claim_lease, release_lease
from tenancy.core.errors import OutsideTenant
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.journeys.interleaving.puppet import Puppet
from tests.journeys.interleaving.stage import Stage

PROBED = "nobody.calls"
Sabotage = AbstractContextManager[Any]
Scene = Callable[[Stage, Sabotage], None]


class Unsafe(AssertionError):
    """A safety rule was broken."""


def safe(holds: bool, sentence: str) -> None:
    """Raises Unsafe with the sentence unless it holds."""
    if not holds:
        raise Unsafe(sentence)


# -- leases and fences ---------------------------------------------------------------------------------------


def a_worker_that_lost_its_lease_writes_nothing(stage: Stage, sabotage: Sabotage) -> None:
    """Another worker has claimed the run; the first wakes up in front of its commit."""
    late, now = stage.puppets["a"], stage.puppets["b"]
    _set_out(stage, late, "before_commit")
    stage.clock.lease_dies(stage.run)
    _set_out(stage, now, "before_commit")
    before = stage.world.run(stage.run).version
    with sabotage:
        late.step()
    safe(stage.world.run(stage.run).version == before, "a fenced worker committed")


def a_worker_without_a_lease_writes_nothing(stage: Stage, sabotage: Sabotage) -> None:
    """It has only read the run: it gave the lease back, and nobody has taken it."""
    claimed = claim_lease(stage.world.id, stage.run, "reader")
    assert claimed is not None
    hand = load_claimed_run(stage.world.id, stage.run, "reader", claimed)
    release_lease(stage.world.id, stage.run, "reader", claimed.fence)
    with sabotage, suppress(LeaseLost):
        commit_run(hand, (TimerFired(at=claimed.at),), {})
    safe(stage.world.run(stage.run).version == claimed.version, "a worker without a lease committed")


def a_lease_is_held_by_one(stage: Stage, sabotage: Sabotage) -> None:
    """A second worker claims what a living one holds."""
    assert claim_lease(stage.world.id, stage.run, "first") is not None
    with sabotage:
        second = claim_lease(stage.world.id, stage.run, "second")
    safe(second is None, "two workers hold one run")


# -- grants and decisions ------------------------------------------------------------------------------------


def a_grant_that_ran_out_moves_no_money(stage: Stage, sabotage: Sabotage) -> None:
    """The worker comes to an approved refund after the grant's time."""
    _approve(stage, _asked(stage, "payments.refund"))
    stage.clock.grants_expire(stage.run)
    with sabotage:
        _drive(stage)
    safe(stage.company.effects("payments") == [], "money moved on a grant that had run out")


def a_grant_is_for_one_action(stage: Stage, sabotage: Sabotage) -> None:
    """Somebody uses the grant for other arguments."""
    request = _asked(stage, "payments.refund")
    _approve(stage, request)
    with sabotage, tenant_transaction(stage.world.id):
        answer = consume_grant(
            stage.world.id, request.id, effect_id="0" * 32, action_digest="f" * 64, at=database_now(),
            cursor=raw_cursor(),
        )  # fmt: skip
    safe(isinstance(answer, UnusableGrant), "a grant was used for an action that nobody saw")


def a_decision_is_about_the_packet_that_was_seen(stage: Stage, sabotage: Sabotage) -> None:
    """A reviewer decides on a page that shows another packet."""
    request = _asked(stage, "payments.refund")
    with sabotage, suppress(ApprovalError):
        stage.world.decide(request, stage.world.people.approver, packet_digest="0" * 64)
    safe(_fresh(stage, request).status == "pending", "a decision about another packet counted")


def a_request_is_decided_once(stage: Stage, sabotage: Sabotage) -> None:
    """A second reviewer says no to what the first has approved."""
    request = _asked(stage, "payments.refund")
    stage.world.decide(request, stage.world.people.approver)
    with sabotage, suppress(ApprovalError, IntegrityError):
        stage.world.decide(request, stage.world.people.second_approver, "reject")
    safe(_fresh(stage, request).outcome == "approve", "a decision was overturned")


# -- money, intents and sends --------------------------------------------------------------------------------


def nothing_is_sent_unreserved(stage: Stage, sabotage: Sabotage) -> None:
    """The first call of a run: the company's own journal says whether it came, the ledger whether it was
    held.
    """
    with sabotage, suppress(Exception):
        _drive(stage)
    with tenant_transaction(stage.world.id):
        held = Entry.objects.filter(run_id=stage.run, cause="reserve").exists()
    safe(held or stage.company.requests("orders") == [], "a call went out that no line held")


def what_was_given_up_is_not_sent(stage: Stage, sabotage: Sabotage) -> None:
    """The worker sleeps in front of a send; another gives the call up; the first wakes."""
    _approve_until(stage, "mail.send")
    late, now = stage.puppets["a"], stage.puppets["b"]
    _set_out(stage, late, "before_dispatch")
    stage.clock.lease_dies(stage.run)
    now.begin(lambda: now.worker.advance(stage.run))
    now.finish()
    before = len(stage.company.effects("mail"))
    with sabotage:
        late.finish()
    safe(len(stage.company.effects("mail")) == before, "a call was sent after it had been given up")


def a_stop_holds_what_was_committed_before_it(stage: Stage, sabotage: Sabotage) -> None:
    """The emergency stop falls between the intent and the send."""
    _approve(stage, _asked(stage, "payments.refund"))
    worker = stage.puppets["a"]
    _set_out(stage, worker, "dispatched")
    stop = stop_everything("tenant", tenant_id=stage.world.id, by=None, reason="a test stops it")
    try:
        with sabotage:
            worker.finish()
        safe(stage.company.effects("payments") == [], "money moved under an emergency stop")
    finally:
        lift_stop(stop.id, tenant_id=stage.world.id, by=None, reason="the test is over")


def what_was_sent_is_known_after_a_crash(stage: Stage, sabotage: Sabotage) -> None:
    """The worker dies as soon as the message is out; another takes over, with every wall in place."""
    _approve_until(stage, "mail.send")
    first = stage.puppets["a"]
    with sabotage, suppress(Error):
        first.begin(lambda: first.worker.advance(stage.run))
        while first.busy and not stage.company.effects("mail"):
            first.step()
        if first.busy:
            first.kill()
    assert stage.close().terminal_code, "the scene did not come to its end"
    safe(len(stage.company.effects("mail")) <= 1, "a message was sent twice")


# -- tenants -------------------------------------------------------------------------------------------------


def one_call_tries_what_was_left_alone(stage: Stage, sabotage: Sabotage) -> None:
    """A circuit's cooldown is over, and two workers want to call."""
    boards = [TenantCircuits(stage.world.id, setting=Setting(threshold=1)) for _ in range(2)]
    boards[0].trip("tool", PROBED, "timeout")
    stage.clock.circuits_cool_down(stage.world.id)
    with sabotage:
        answers = [board.admit("tool", PROBED, timeout_ms=60_000) for board in boards]
    probes = [one for one in answers if isinstance(one, Ticket)]
    safe(len(probes) == 1, f"{len(probes)} calls tried at once what was left alone")


def another_tenant_sees_nothing(stage: Stage, sabotage: Sabotage) -> None:
    """Somebody asks for the run from another tenant, by its id."""
    with sabotage, tenant_transaction(stage.world.people.other_tenant.id):
        seen = Run.objects.filter(id=stage.run).exists()
    safe(not seen, "another tenant saw the run")


def nobody_sees_anything_outside_a_tenant(stage: Stage, sabotage: Sabotage) -> None:
    """Somebody forgot to say for whom."""
    seen = False
    with sabotage, suppress(OutsideTenant):
        seen = Run.objects.filter(id=stage.run).exists()
    safe(not seen, "a run was seen without a tenant")


def seen_by_its_own_tenant(stage: Stage) -> bool:
    """Whether the run's own tenant sees it."""
    with tenant_transaction(stage.world.id):
        return Run.objects.filter(id=stage.run).exists()


# -- moves ---------------------------------------------------------------------------------------------------


def _set_out(stage: Stage, worker: Puppet, point: str) -> None:
    worker.begin(lambda: worker.worker.advance(stage.run))
    worker.until(point)


def _drive(stage: Stage) -> None:
    """One worker, as far as it goes."""
    worker = stage.puppets["a"]
    worker.begin(lambda: worker.worker.advance(stage.run))
    worker.finish()


def _asked(stage: Stage, tool: str) -> Request:
    """Drive the run to the gate of a tool; its request."""
    _drive(stage)
    (request,) = stage.world.open_requests(stage.run)
    assert request.tool == tool
    return request


def _approve(stage: Stage, request: Request) -> None:
    stage.world.decide(request, stage.world.people.approver)


def _approve_until(stage: Stage, tool: str) -> None:
    """Drive the run through its gates and approve that of `tool` as the last."""
    _approve(stage, _asked(stage, "payments.refund"))
    if tool != "payments.refund":
        _approve(stage, _asked(stage, tool))


def _fresh(stage: Stage, request: Request) -> Request:
    with tenant_transaction(stage.world.id):
        return Request.objects.get(id=request.id)
