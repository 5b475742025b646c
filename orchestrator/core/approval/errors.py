"""Errors of what people decide: changes in doubt, queues, reviews, proposals, memory."""

from orchestrator.core.common.errors import OrchestratorError


class EffectNotInDoubt(OrchestratorError):
    """Nobody has to say what became of it: {why}."""

    code = "effect-not-in-doubt"


class RunUnderWay(OrchestratorError):
    """The run is {status}; while it is under way, what became of a change is said to its request."""

    code = "run-under-way"


class NoLookUp(OrchestratorError):
    """The tool {tool} names no look-up, so a person has to say what happened."""

    code = "no-look-up"


class OwnProposal(OrchestratorError):
    """What guards less needs the word of a second person, and you asked for this yourself."""

    code = "own-proposal"
    http_status = 403


class BroughtAlong(OwnProposal):
    """You are related to the person who asked for this; an administrator who is not has to agree."""

    code = "brought-along"


class ProposalOpen(OrchestratorError):
    """Another such change waits for a second person; settle that one first."""

    code = "proposal-open"


class ProposalSettled(OrchestratorError):
    """It waits no longer: it was {status} before."""

    code = "proposal-settled"


class MemoryRefused(OrchestratorError):
    """It is not remembered: {detail}."""

    code = "memory-refused"


class ReviewRefused(OrchestratorError):
    """That is not done with this item: {detail}."""

    code = "review-refused"


class QueueInUse(OrchestratorError):
    """The queue {name} stays open while something names it or waits in it: {shown}."""

    code = "queue-in-use"
