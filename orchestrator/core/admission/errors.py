"""Errors of submission, of signals to runs and of retries."""

from orchestrator.core.common.errors import OrchestratorError


class GoalInvalid(OrchestratorError):
    """The goal is not acceptable: {detail}"""

    code = "goal-invalid"
    http_status = 422


class RunNotFound(OrchestratorError):
    """There is no such run."""

    code = "not-found"
    http_status = 404


class RunOver(OrchestratorError):
    """The run has ended as {status}; it cannot be changed."""

    code = "run-over"


class RunNotOver(OrchestratorError):
    """The run is {status}; only one that has ended can be retried."""

    code = "run-not-over"


class RunSucceeded(OrchestratorError):
    """The run came to its result; there is nothing to retry."""

    code = "run-succeeded"


class RetriedAlready(OrchestratorError):
    """The run was retried already; the newest run of its task is {newest}."""

    code = "retried-already"


class NoCheckpoint(OrchestratorError):
    """No retry can begin there: {why}."""

    code = "no-checkpoint"


class ChangedSince(OrchestratorError):
    """The run changed something after that: {tools}. A retry from there would not know of it."""

    code = "changed-since"


class EffectInDoubt(OrchestratorError):
    """Nobody has said whether this happened: {tools}. A retry could make it happen twice, so somebody who may
    decide says first what became of it."""

    code = "effect-in-doubt"


class LearntLate(OrchestratorError):
    """It was learnt too late for the run to know that this may have happened: {tools}. Nor would a retry,
    until somebody who may decide says what became of it."""

    code = "learnt-late"


class StillRecording(OrchestratorError):
    """The run has ended, and something that reached it since is still to be recorded; ask again shortly."""

    code = "still-recording"


class RetryRefused(OrchestratorError):
    """The run cannot be retried: {detail}."""

    code = "retry-refused"


class TierTooHigh(OrchestratorError):
    """The workflow is of autonomy tier {tier}; this tenant allows {allowed}."""

    code = "tier-too-high"
    http_status = 403


class Stopped(OrchestratorError):
    """An emergency stop is in force: {scope}."""

    code = "emergency-stop"
    http_status = 503


class NoModel(OrchestratorError):
    """No model is configured and the workflow has no scripted scenario."""

    code = "no-model"
    http_status = 422
