"""The base of most node kinds: they return a result when entered and wait for nothing."""

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.run_events import AnyEvent
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult
from traces.core.events.phases import Phase


class PlainNode:
    """A kind that never waits. Subclasses set the class variables and implement `enter`.

    A kind that does not set `config` has no settings.
    """

    kind: ClassVar[str]
    outcomes: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()
    phases: ClassVar[Mapping[str, Phase]]
    artifact: ClassVar[str]
    starts_work: ClassVar[bool] = False
    config: ClassVar[type[FrozenModel]] = FrozenModel

    def enter(self, view: NodeContext) -> NodeResult:
        """Enter the node."""
        raise NotImplementedError

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """Ignore a late timer, because this node waits for nothing.

        Raises: UnexpectedEvent for any other event.
        """
        if event.kind == "timer_fired":
            return NodeResult(state=view.state)
        raise UnexpectedEvent(node=view.node.id, event=event.kind)
