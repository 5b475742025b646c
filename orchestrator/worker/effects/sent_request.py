"""Facts about one mutating request that decide its fate (orchestrator/core/domain/call_outcomes.py)."""

from dataclasses import dataclass
from datetime import datetime

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.calls.invocation import may_pass, repeats_left
from orchestrator.core.calls.open_effects import open_of
from orchestrator.core.domain.call_outcomes import Answer, CallFacts
from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import Recovered, ToolFailed
from orchestrator.core.domain.run_state import UnreadAnswer
from orchestrator.core.domain.tool_spec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request of a change. `again`: a worker that died may have sent it before."""

    hand: ClaimedRun
    effect: CallTool
    again: bool

    @property
    def spec(self) -> ToolSpec:
        """The tool's pinned version."""
        return self.hand.manifest.pins.by_name[self.effect.tool]

    @property
    def before(self) -> bool:
        """Return whether an earlier request of the same action may have been received.

        An earlier request that certainly was not sent leaves no doubt.
        """
        if self.again:
            return True
        call = next((one for one in self.hand.state.batch if one.effect == self.effect.id), None)
        return call is not None and open_of(self.hand.state, call) is not None

    def looks_first(self) -> bool:
        """Return whether the request must be looked up, or is in doubt, before it is sent.

        This is so if an earlier request of the same action is open.
        """
        return self.effect.look_first and not self.again

    def may_follow(self, found: Recovered) -> bool:
        """Return whether the request may be sent after its lookup.

        It may be sent under its key, or if the change certainly was not made before.
        """
        if found.resolution == "found":
            return False
        return self.effect.honours_keys or found.resolution == "abandoned"

    def came(self, event: ToolFailed) -> CallFacts:
        """Collect the known facts about the request after its failure."""
        effect = self.effect
        repeats = may_pass(event) and repeats_left(self.hand.state, self.spec, effect.attempt)
        return CallFacts(
            mutating=True, sent=event.sent, answer=event.answer, keys=effect.honours_keys,
            repeats_left=repeats, lookup=effect.lookup, conclusive=effect.conclusive,
            final=self.spec.error_means_no_effect, before=self.before,
        )  # fmt: skip

    def told(self, event: ToolFailed) -> ToolFailed:
        """Return the failure as seen for the whole action.

        If a worker that died may have sent the request, the run's own state does not show that.
        """
        if not self.again:
            return event
        if not event.sent:
            return event.evolve(sent=True, answer=Answer.NONE)
        return event.evolve(answer=Answer.ERROR) if event.answer is Answer.REFUSED else event

    def build_doubt_event(self, at: datetime, unread: UnreadAnswer | None) -> Recovered:
        """Return the event for an unknown outcome."""
        return Recovered(at=at, effect=self.effect.id, resolution="in_doubt", unread=unread)
