"""Two hundred runs at once against one ceiling: never passed by a cent, at no instant, and each that is
refused is told by which window (R-BUDGET-9). The same through the ring, with models and tools, is in
`tests/journeys/test_ceilings.py`."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Event, Thread
from uuid import UUID

import psycopg
from django.db import connections

from budgets.core.posting import Refusal
from budgets.ledger_verification import verify_ledger, verify_windows
from budgets.queries import tenant_spending
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import NOON, ceilings, open_purse
from tests.proves import proves

RUNS, AT_ONCE, CALLS = 200, 12, 3
CEILING = Decimal("1.00")
TAKEN = """
SELECT l.used + l.reserved FROM budgets_line l JOIN budgets_account a ON a.id = l.account_id
 WHERE a.kind = 'tenant_day' AND a.tenant_id = %s"""


class Watch(Thread):
    """Looks at the tenant's day over and over: the most that was ever taken of it, as others see it."""

    def __init__(self, superuser: psycopg.Connection, tenant_id: UUID) -> None:
        super().__init__()
        self._asked, self._over = (superuser, tenant_id), Event()
        self.most, self.looks = Decimal(0), 0

    def run(self) -> None:
        """Until it is over."""
        superuser, tenant_id = self._asked
        while not self._over.is_set():
            row = superuser.execute(TAKEN, (tenant_id,)).fetchone()
            self.most, self.looks = max(self.most, row[0] if row else Decimal(0)), self.looks + 1

    def end(self) -> None:
        """The last look is over."""
        self._over.set()
        self.join()


def calls(tenant_id: UUID, number: int) -> Refusal | None:
    """A run of some calls: each reserved at its worst case, and settled at what it took. Its refusal."""
    try:
        purse = open_purse(tenant_id, {"cost_usd": 1})
        refused = None
        for _ in range(CALLS):
            effect, posting = purse.reserve({"cost_usd": "0.013"})
            refused = posting.refused
            if refused is not None:
                break
            purse.settle(effect, {"cost_usd": "0.013" if number % 2 else "0.007"})
        purse.close()
        return refused
    finally:
        connections.close_all()


@proves("R-BUDGET-9", part="two hundred runs at the book")
@proves("B2", part="two hundred at once")
def test_two_hundred_runs_at_once_never_pass_the_ceiling_at_any_instant(
    house: House, superuser: psycopg.Connection
) -> None:
    here = house.tenant.id
    ceilings(here, daily=str(CEILING), tranche="0.02")
    open_purse(here).reserve({"cost_usd": "0.001"})
    watch = Watch(superuser, here)
    watch.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            refusals = [one for one in pool.map(lambda n: calls(here, n), range(RUNS)) if one is not None]
    finally:
        watch.end()
    assert watch.looks > AT_ONCE
    assert CEILING - Decimal("0.05") < watch.most <= CEILING
    assert len(refusals) > RUNS // 4
    for refused in refusals:
        assert (refused.account, refused.limit, refused.wanted) == ("tenant_day", CEILING, Decimal("0.013"))
        assert refused.left < refused.wanted
    with tenant_transaction(here):
        assert tenant_spending(NOON)["tenant_day"] <= CEILING
        assert verify_ledger() == []
        assert verify_windows() == []
