"""The decisions possible on a request: those that fit its kind and its packet (R-APPR-3)."""

from approvals.core.lifecycle import FITTING, DecisionKind
from approvals.core.packet import Packet

LONGEST_WORDS = 2_000


def list_allowed_decisions(packet: Packet) -> tuple[DecisionKind, ...]:
    """List the decisions that a request accepts, according to its packet."""
    back = packet.proposal is not None and packet.proposal.returnable
    return tuple(kind for kind in FITTING[packet.kind] if back or kind is not DecisionKind.REVISE)


def unfit_words(words: str) -> str:
    """Return what is wrong with the reason for sending a call back; "" if nothing is."""
    if not any(sign.isprintable() and not sign.isspace() for sign in words):
        return "what you ask or want changed, which the agent is told"
    if len(words) > LONGEST_WORDS:
        return f"what you ask or want changed in at most {LONGEST_WORDS} characters"
    return ""


def why_not_back(packet: Packet) -> str:
    """Return why a request cannot be sent back, as the end of a sentence."""
    if packet.proposal is None or packet.proposal.number < packet.proposal.most:
        return "nobody in its run could propose it anew: approve, edit or reject it"
    return f"it is the last of {packet.proposal.most} proposals: approve, edit or reject it"
