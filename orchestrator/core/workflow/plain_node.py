"""What most kinds share: they answer on being entered and wait for nothing."""

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.core.common.errors import Misfit
from orchestrator.core.common.frozen_model import Value
from orchestrator.core.domain.run_events import AnyEvent
from orchestrator.core.workflow.node_protocol import Step, View
from traces.core.events.phases import Phase


class Plain:
    """A kind that never waits. Subclasses say what they are and answer `enter`."""

    kind: ClassVar[str]
    outcomes: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()
    phases: ClassVar[Mapping[str, Phase]]
    artifact: ClassVar[str]
    starts_work: ClassVar[bool] = False
    config: ClassVar[type[Value]]

    def enter(self, view: View) -> Step:
        """The run arrives here."""
        raise NotImplementedError

    def on(self, view: View, event: AnyEvent) -> Step:
        """Nothing is awaited here. A timer that fires late changes nothing."""
        if event.kind == "timer_fired":
            return Step(state=view.state)
        raise Misfit(node=view.node.id, event=event.kind)
