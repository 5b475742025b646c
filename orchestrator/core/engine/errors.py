"""Errors of the machine and of replay."""

from orchestrator.core.common.errors import OrchestratorError


class Corrupt(OrchestratorError):
    """The run's state breaks an invariant: {rule}."""

    code = "corrupt-state"
    http_status = 500


class ReplayDiffers(OrchestratorError):
    """The run {run} does not replay: record {record}: {detail}"""

    code = "replay-differs"
    http_status = 500
