"""The errors of the orchestrator, each with a code and a sentence."""

from tenancy.core.errors import InterlockError


class OrchestratorError(InterlockError):
    """Interlock refused this."""

    code = "orchestrator-error"


class IllegalMove(OrchestratorError):
    """A run cannot go from {source} to {target}."""

    code = "illegal-move"


class Corrupt(OrchestratorError):
    """The run's state breaks an invariant: {rule}."""

    code = "corrupt-state"


class UnexpectedEvent(OrchestratorError):
    """Node {node} cannot answer {event} here."""

    code = "misfit-event"


class ContentMissing(OrchestratorError):
    """Content is not at hand: {digests}."""

    code = "content-missing"


class ContentSought(ContentMissing):
    """Content is not at hand, and perhaps nowhere: {digests}."""


class CompileFailed(OrchestratorError):
    """The workflow graph does not compile: {count} fault(s)."""

    code = "compile-failed"


class GoalInvalid(OrchestratorError):
    """The goal is not acceptable: {detail}"""

    code = "goal-invalid"


class WorkflowUnknown(OrchestratorError):
    """There is no published workflow {slug}. GET /api/v1/workflows lists the published ones."""

    code = "workflow-unknown"


class RunNotFound(OrchestratorError):
    """There is no such run."""

    code = "not-found"


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


class EffectNotInDoubt(OrchestratorError):
    """Nobody has to say what became of it: {why}."""

    code = "effect-not-in-doubt"


class RunUnderWay(OrchestratorError):
    """The run is {status}; while it is under way, what became of a change is said to its request."""

    code = "run-under-way"


class NoLookUp(OrchestratorError):
    """The tool {tool} names no look-up, so a person has to say what happened."""

    code = "no-look-up"


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


class Stopped(OrchestratorError):
    """An emergency stop is in force: {scope}."""

    code = "emergency-stop"


class NoModel(OrchestratorError):
    """No model is configured and the workflow has no scripted scenario."""

    code = "no-model"


class DiskFull(OrchestratorError):
    """The store is full: new work is refused, accepted work is kept."""

    code = "store-full"


class ReplayDiffers(OrchestratorError):
    """The run {run} does not replay: record {record}: {detail}"""

    code = "replay-differs"


class EgressRefused(OrchestratorError):
    """The address may not be reached: {detail}."""

    code = "egress-refused"


class DefinitionRefused(OrchestratorError):
    """The tool's definition is not accepted: {detail}."""

    code = "definition-refused"


class ServerUnreachable(OrchestratorError):
    """The tool server {server} did not answer as one: {detail}."""

    code = "server-unreachable"


class NameTaken(OrchestratorError):
    """The name {name} is taken."""

    code = "name-taken"


class Quarantined(OrchestratorError):
    """{name} is in quarantine; look at it on the page of the server {server} and admit it there."""

    code = "quarantined"


class OwnProposal(OrchestratorError):
    """What guards less needs the word of a second person, and you asked for this yourself."""

    code = "own-proposal"


class BroughtAlong(OwnProposal):
    """You are related to the person who asked for this; an administrator who is not has to agree."""

    code = "brought-along"


class ProposalOpen(OrchestratorError):
    """Another such change waits for a second person; settle that one first."""

    code = "proposal-open"


class ProposalSettled(OrchestratorError):
    """It waits no longer: it was {status} before."""

    code = "proposal-settled"


class WebhookOff(OrchestratorError):
    """The webhook {name} is off; turn it on first."""

    code = "webhook-off"


class PathRefused(OrchestratorError):
    """{path} is no name for a file of a workspace: {detail}."""

    code = "path-refused"


class WorkspaceRefused(OrchestratorError):
    """The workspace cannot be so: {detail}."""

    code = "workspace-refused"


class DiffRefused(OrchestratorError):
    """The diff is not applied: {detail}."""

    code = "diff-refused"


class WorkspaceMoved(OrchestratorError):
    """The workspace is at {now}, and this was made for {base}; read it again."""

    code = "workspace-moved"


class MemoryRefused(OrchestratorError):
    """It is not remembered: {detail}."""

    code = "memory-refused"


class ReviewRefused(OrchestratorError):
    """That is not done with this item: {detail}."""

    code = "review-refused"


class QueueInUse(OrchestratorError):
    """The queue {name} stays open while something names it or waits in it: {shown}."""

    code = "queue-in-use"
