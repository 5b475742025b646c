"""What a worker knows of one request that changes something, when it asks the table what becomes of it
(orchestrator/core/domain/call_outcomes.py)."""

from dataclasses import dataclass
from datetime import datetime

from orchestrator.actions.claimed_run import ClaimedRun
from orchestrator.core.calls.invocation import may_pass, repeats_left
from orchestrator.core.calls.open_effects import open_of
from orchestrator.core.domain.call_outcomes import OPEN_SINCE, Answer, Came, Fate, fate_of
from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import Recovered, ToolFailed
from orchestrator.core.domain.run_state import Unread
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.queries.inflight_effects import was_sent_in_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a change. `again`: a worker that died may have sent it before."""

    hand: ClaimedRun
    effect: CallTool
    again: bool

    @property
    def spec(self) -> ToolSpec:
        """The tool's pinned version."""
        return self.hand.manifest.pins.by_name[self.effect.tool]

    @property
    def is_early(self) -> bool:
        """Whether the run was admitted under a core that knows no open effects."""
        return self.hand.manifest.core_version < OPEN_SINCE

    @property
    def before(self) -> bool:
        """Whether an earlier request of the same action may have reached somebody. One that surely was not
        sent leaves nothing to doubt."""
        if self.again:
            return True
        call = next((one for one in self.hand.state.batch if one.effect == self.effect.id), None)
        if call is None:
            return False
        if self.is_early:
            return self.effect.attempt - 1 > call.unsent
        return open_of(self.hand.state, call) is not None

    def looks_first(self) -> bool:
        """Whether it is looked up, or in doubt, before it is sent: an earlier one of the same action is open.
        Where the run's core cannot know that, the intents of its line say whether its key was sent."""
        if self.again:
            return False
        if not self.is_early:
            return self.effect.look_first
        if self.hand.manifest.began is None or (self.effect.honours_keys and not self.effect.lookup):
            return False
        return was_sent_in_line(self.hand.tenant, self.hand.run, self.effect.key)

    def may_follow(self, found: Recovered) -> bool:
        """Whether it is sent after what the look-up brought: under its key, or where it surely was not done
        before."""
        if found.resolution == "found":
            return False
        return self.effect.honours_keys or found.resolution == "abandoned"

    def came(self, event: ToolFailed) -> Came:
        """What is known of it now."""
        effect = self.effect
        repeats = may_pass(event) and repeats_left(self.hand.state, self.spec, effect.attempt)
        return Came(
            mutating=True, sent=event.sent, answer=event.answer, keys=effect.honours_keys,
            repeats_left=repeats and not self.is_early, lookup=effect.lookup, conclusive=effect.conclusive,
            final=self.spec.error_means_no_effect, before=self.before,
        )  # fmt: skip

    def fate(self, came: Came) -> Fate:
        """What becomes of it. A run that cannot note an open effect asks a person instead."""
        became = fate_of(came)
        return Fate.IN_DOUBT if became is Fate.OPEN and self.is_early else became

    def told(self, event: ToolFailed) -> ToolFailed:
        """The failure as it is one of the action: where a worker that died may have sent it, the run does not
        know that from its own state."""
        if not self.again:
            return event
        if not event.sent:
            return event.evolve(sent=True, answer=Answer.NONE)
        return event.evolve(answer=Answer.ERROR) if event.answer is Answer.REFUSED else event

    def doubted(self, at: datetime, unread: Unread | None) -> Recovered:
        """Nobody knows what became of it."""
        return Recovered(at=at, effect=self.effect.id, resolution="in_doubt", unread=unread)
