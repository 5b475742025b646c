"""A change of which somebody said that it did not happen, and its company that says later that it did."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID

from django.db import connection

from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer, calls, failing
from tests.factories.foreign import called, onwards, to_the_end
from tests.factories.hurry import in_no_hurry
from tests.factories.world import World, fresh_worker
from tests.journeys.interleaving.clock import Clock

# A key that nobody takes back is no reason to leave a provider alone for a while, as a breakdown is.
DOWN = failing(401, "Your key was revoked.")
# Nobody can look such a posting up, so people are asked what became of it.
POSTING = calls(called("ledger.post", account="refunds", amount="-10.00", memo=""))


@contextmanager
def denied(
    world: World, company: Company, server: OpenAIServer, clock: Clock
) -> Iterator[tuple[UUID, Callable[[], None]]]:
    """A run that failed after somebody had said that its posting did not happen; and a function that lets
    its first worker hear that it did."""
    server.play(POSTING, DOWN)
    run = world.submit("tool-loop", "Post -10.00 to the account refunds.")
    onwards(world, run)
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver)
    company.faults("ledger", "hang", times=1, on="writes")
    with in_no_hurry("ledger.post"), ThreadPoolExecutor(1) as pool:
        out = pool.submit(advanced, run)

        def heard() -> None:
            company.faults("ledger", "none")
            out.result(20)
            assert len(company.effects("ledger")) == 1

        company.wait_until_held("ledger")
        clock.lease_dies(run)
        try:
            found = to_the_end(world, run, verdict="not_happened")
            assert found.terminal_code == "UNAVAILABLE_DEP", found.reason
            yield run, heard
        finally:
            company.faults("ledger", "none")


def advanced(run: UUID) -> None:
    """A worker of its own takes the run, in a thread of its own."""
    try:
        fresh_worker().advance(run)
    finally:
        connection.close()
