"""tool: one fixed call, its arguments taken from inputs, facts, the draft or constants (tiers 1 to 4;
phase 8)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from orchestrator.core.desk import Desk
from orchestrator.core.inputs import MISSING, inputs, pointed
from orchestrator.core.nodes.base import Plain
from orchestrator.core.revising import asked_anew
from orchestrator.core.state import Call
from orchestrator.core.step import Step, View, say
from orchestrator.core.value import Slug, Small, Value
from traces.core.canonical import canonical_outside
from traces.core.events import CallRequested
from traces.core.phases import Phase


class FromInput(Value):
    """A value the client gave; `else_` where it did not."""

    source: Literal["input"] = Field(alias="from")
    pointer: str
    otherwise: "Source | None" = Field(default=None, alias="else")


class FromFact(Value):
    """A field of a committed fact's observation."""

    source: Literal["fact"] = Field(alias="from")
    fact: Slug
    pointer: str


class FromDraft(Value):
    """The text of the last draft."""

    source: Literal["draft"] = Field(alias="from")


class Constant(Value):
    """A value that stands in the workflow, or a list of such."""

    source: Literal["constant"] = Field(alias="from")
    value: Small | tuple[Small, ...]


class FromRun(Value):
    """The run's id, as a reference that the other side can be asked for; of a retry that of the first run."""

    source: Literal["run"] = Field(alias="from")


Source = Annotated[FromInput | FromFact | FromDraft | Constant | FromRun, Field(discriminator="source")]


class Config(Value):
    """`tool` is called with `arguments`; its result becomes the fact `fact`."""

    tool: str
    fact: Slug
    arguments: dict[str, Source]


class FixedTool(Plain):
    kind: ClassVar[str] = "tool"
    outcomes: ClassVar[tuple[str, ...]] = ("requested", "missing_info")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.ACTION_SELECTION)
    artifact: ClassVar[str] = "proposed action"
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
        """Assemble the arguments and queue the call; a value that is not there is missing information."""
        config: Config = view.node.config
        found = {name: value_of(view, source) for name, source in config.arguments.items()}
        missing = tuple(name for name, value in found.items() if value is MISSING)
        state = view.state
        if missing:
            asked = state.evolve(asked=missing, reason=f"missing:{','.join(missing)}")
            return Step(state=asked, outcome="missing_info")
        number = state.counters.calls + 1
        raw = view.desk.put(canonical_outside(found))
        call = Call(
            id=f"c{number}", by=view.node.id, provider_id=f"c{number}", tool=config.tool, ordinal=0, raw=raw
        )
        body = CallRequested(call=call.id, tool=call.tool, arguments=raw, ordinal=0, by="node")
        queued = state.evolve(queue=(call,), results=(), counters=state.counters.evolve(calls=number))
        anew = asked_anew(view, queued, call.by, (call.tool,))
        return Step(state=anew, outcome="requested", said=(say(Phase.ACTION_SELECTION, body),))


def value_of(view: View, source: Source) -> Any:
    """The value a source names, or MISSING."""
    desk: Desk = view.desk
    if isinstance(source, FromInput):
        value = pointed(inputs(view.manifest.goal, view.state, desk), source.pointer)
        return value_of(view, source.otherwise) if value is MISSING and source.otherwise else value
    if isinstance(source, FromFact):
        fact = view.state.facts.get(source.fact)
        return MISSING if fact is None else pointed(desk.json(fact.digest), source.pointer)
    if isinstance(source, FromDraft):
        draft = view.state.draft
        return MISSING if draft is None else desk.text(draft, 20_000)
    if isinstance(source, FromRun):
        return str(view.manifest.line)
    return list(source.value) if isinstance(source.value, tuple) else source.value


KIND = FixedTool()
