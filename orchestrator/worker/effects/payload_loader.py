"""Content for an effect: from the shelf, else from the store."""

from orchestrator.actions.claimed_run import Hand
from orchestrator.core.common.errors import ContentMissing
from tenancy.db.tenant_context import tenant
from traces.queries import payloads


def body_of(hand: Hand, digest: str) -> bytes:
    """The bytes of `digest`. Raises ContentMissing where they were erased."""
    if digest not in hand.shelf:
        with tenant(hand.tenant):
            hand.shelf.keep(payloads(hand.run, (digest,)))
    if digest not in hand.shelf:
        raise ContentMissing(digests=(digest,))
    return hand.shelf[digest]
