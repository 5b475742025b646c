"""A run's end: its account is closed, its figures are noted, and what it still asked of people is withdrawn,
in the same transaction."""

from collections.abc import Mapping
from datetime import datetime

from approvals.actions import withdraw_open
from budgets.actions import Settle, close_run_account
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.run_statistics import note_end
from orchestrator.core.domain.effects import Finish
from orchestrator.notifications.actions.run_notifications import tell_ended


def complete_run(
    hand: ClaimedRun, at: datetime, finish: Finish, settles: tuple[Settle, ...]
) -> Mapping[str, str]:
    """Settle the last effect, release what is held, withdraw what is still asked, note the figures, tell the
    tenant's endpoints; what the record is to bind."""
    withdraw_open(hand.tenant, hand.run, f"run {finish.status.value}: {finish.code.value}", at)
    entries = close_run_account(hand.tenant, hand.run, at, settles=settles).entries
    note_end(hand, at, finish)
    tell_ended(hand, at, finish)
    return entries
