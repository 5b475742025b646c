"""Errors of approvals."""

from tenancy.core.errors import InterlockError


class ApprovalError(InterlockError):
    """This cannot be decided so."""

    code = "approval-error"


class RequestNotFound(ApprovalError):
    """There is no such request."""

    code = "not-found"
    http_status = 404


class NotYours(ApprovalError):
    """This request is not yours to decide: {reason}"""

    code = "not-yours"
    http_status = 403


class AlreadyDecided(ApprovalError):
    """The request was already {status}."""

    code = "already-decided"


class Expired(ApprovalError):
    """The request expired at {expires_at}."""

    code = "request-expired"
    http_status = 410


class PacketChanged(ApprovalError):
    """What you decided on is not what is asked: the packet's digest is {packet_digest}."""

    code = "packet-changed"


class DecisionInvalid(ApprovalError):
    """The decision does not fit the request: {detail}"""

    code = "decision-invalid"
    http_status = 422


class YesStands(ApprovalError):
    """{name} has said yes already; it takes effect at {effective_at} unless it is taken back before."""

    code = "yes-stands"


class NothingToUndo(ApprovalError):
    """There is nothing to take back: {detail}"""

    code = "nothing-to-undo"
