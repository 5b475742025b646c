"""What can be said to one request: what fits its kind, and what its packet offers (R-APPR-3)."""

from approvals.core.lifecycle import FITTING, DecisionKind
from approvals.core.packet import Packet

LONGEST_WORDS = 2_000


def list_allowed_decisions(packet: Packet) -> tuple[DecisionKind, ...]:
    """The words that a request takes, as its packet says."""
    back = packet.proposal is not None and packet.proposal.returnable
    return tuple(kind for kind in FITTING[packet.kind] if back or kind is not DecisionKind.REVISE)


def unfit_words(words: str) -> str:
    """What is wrong with what a person says to send a call back; "" where nothing is."""
    if not any(sign.isprintable() and not sign.isspace() for sign in words):
        return "what you ask or want changed, which the agent is told"
    if len(words) > LONGEST_WORDS:
        return f"what you ask or want changed in at most {LONGEST_WORDS} characters"
    return ""


def why_not_back(packet: Packet) -> str:
    """Why a request cannot be sent back, in a sentence's end."""
    if packet.proposal is None or packet.proposal.number < packet.proposal.most:
        return "nobody in its run could propose it anew: approve, edit or reject it"
    return f"it is the last of {packet.proposal.most} proposals: approve, edit or reject it"
