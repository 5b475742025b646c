"""The verbs of budgets: the only writers of accounts, lines, tranches and the ledger. All join the caller's
transaction."""

from budgets.actions.accounts import close_run_account, extend_run_account, open_run_account
from budgets.actions.alerts import tell_refused
from budgets.actions.ceilings import (
    change_ceilings,
    charge_tenant_check,
    ensure_tenant_windows,
    newest_ceilings,
    require_room,
    set_ceilings,
)
from budgets.actions.corrections import book_correction, record_cost_correction
from budgets.actions.posting import PostHandle, Posting, post_to_ledger, queue_post
from budgets.actions.prices import declare_price, state_price
from budgets.actions.rates import change_rates, newest_rates
from budgets.core.posting import Refusal, Reserve, Settle

__all__ = [
    "PostHandle",
    "Posting",
    "Refusal",
    "Reserve",
    "Settle",
    "book_correction",
    "change_ceilings",
    "change_rates",
    "charge_tenant_check",
    "close_run_account",
    "declare_price",
    "ensure_tenant_windows",
    "extend_run_account",
    "newest_ceilings",
    "newest_rates",
    "open_run_account",
    "post_to_ledger",
    "queue_post",
    "record_cost_correction",
    "require_room",
    "set_ceilings",
    "state_price",
    "tell_refused",
]
