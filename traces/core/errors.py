"""Errors of the trace."""

from tenancy.core.errors import InterlockError


class TraceError(InterlockError):
    """The trace refuses this."""

    code = "trace-error"


class NotCanonical(TraceError):
    """This has no canonical form: {detail}"""

    code = "not-canonical"
    http_status = 500


class TraceMissing(TraceError):
    """There is no trace of this run."""

    code = "not-found"
    http_status = 404


class Erased(TraceError):
    """The content was erased; its digest stays."""

    code = "content-erased"
    http_status = 410


class Unopenable(TraceError):
    """A sealed value cannot be opened: {detail}"""

    code = "sealed-value-gone"
    http_status = 410


class NotAnExport(TraceError):
    """This is no export of a trace: {detail}"""

    code = "not-an-export"
    http_status = 422


class TooManyViewers(TraceError):
    """You follow as much already as one may at a time: {limit} at once."""

    code = "too-many-viewers"
    http_status = 429
