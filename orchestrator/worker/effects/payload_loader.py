"""Content for an effect: from the shelf, else from the store."""

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.common.errors import ContentMissing
from tenancy.db.tenant_context import tenant_transaction
from traces.queries import load_payloads


def body_of(hand: ClaimedRun, digest: str) -> bytes:
    """The bytes of `digest`. Raises ContentMissing where they were erased."""
    if digest not in hand.shelf:
        with tenant_transaction(hand.tenant):
            hand.shelf.keep(load_payloads(hand.run, (digest,)))
    if digest not in hand.shelf:
        raise ContentMissing(digests=(digest,))
    return hand.shelf[digest]
