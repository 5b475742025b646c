"""A run's end: its account is closed and what it still asked of people is withdrawn, in the same transaction."""

from datetime import datetime

from approvals.actions import withdraw_open
from budgets.actions import close_run_account
from orchestrator.actions.hand import Hand
from orchestrator.core.effects import Finish


def close(hand: Hand, at: datetime, finish: Finish) -> None:
    """Release what is held for the run. Joins the ring's transaction."""
    close_run_account(hand.tenant, hand.run, at)
    withdraw_open(hand.tenant, hand.run, f"run {finish.status.value}: {finish.code.value}", at)
