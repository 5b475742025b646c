"""The root of orchestrator's errors, and those that several packages raise: content, names, tools."""

from tenancy.core.errors import InterlockError


class OrchestratorError(InterlockError):
    """Interlock refused this."""

    code = "orchestrator-error"


class IllegalMove(OrchestratorError):
    """A run cannot go from {source} to {target}."""

    code = "illegal-move"


class ContentMissing(OrchestratorError):
    """Content is not at hand: {digests}."""

    code = "content-missing"
    http_status = 500


class ContentSought(ContentMissing):
    """Content is not at hand, and perhaps nowhere: {digests}."""


class DiskFull(OrchestratorError):
    """The store is full: new work is refused, accepted work is kept."""

    code = "store-full"
    http_status = 507


class EgressRefused(OrchestratorError):
    """The address may not be reached: {detail}."""

    code = "egress-refused"
    http_status = 422


class DefinitionRefused(OrchestratorError):
    """The tool's definition is not accepted: {detail}."""

    code = "definition-refused"
    http_status = 422


class ServerUnreachable(OrchestratorError):
    """The tool server {server} did not answer as one: {detail}."""

    code = "server-unreachable"
    http_status = 424


class NameTaken(OrchestratorError):
    """The name {name} is taken."""

    code = "name-taken"


class Quarantined(OrchestratorError):
    """{name} is in quarantine; look at it on the page of the server {server} and admit it there."""

    code = "quarantined"
