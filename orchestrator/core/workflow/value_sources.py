"""The declared sources of a fixed call's arguments: inputs, facts, the draft, constants, the run's id."""

from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Slug, Small
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.workflow.goal_inputs import MISSING, merge_goal_inputs, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext


class FromInput(FrozenModel):
    """A value the client gave; `else_` where it did not."""

    source: Literal["input"] = Field(alias="from")
    pointer: str
    otherwise: "ValueSource | None" = Field(default=None, alias="else")


class FromFact(FrozenModel):
    """A field of a committed fact's observation."""

    source: Literal["fact"] = Field(alias="from")
    fact: Slug
    pointer: str


class FromDraft(FrozenModel):
    """The text of the last draft."""

    source: Literal["draft"] = Field(alias="from")


class Constant(FrozenModel):
    """A value that stands in the workflow, or a list of such."""

    source: Literal["constant"] = Field(alias="from")
    value: Small | tuple[Small, ...]


class FromRun(FrozenModel):
    """The run's id, as a reference that the other side can be asked for; of a retry that of the first run."""

    source: Literal["run"] = Field(alias="from")


ValueSource = Annotated[FromInput | FromFact | FromDraft | Constant | FromRun, Field(discriminator="source")]


class ToolCallConfig(FrozenModel):
    """`tool` is called with `arguments`; its result becomes the fact `fact`."""

    tool: str
    fact: Slug
    arguments: dict[str, ValueSource]


def value_of(view: NodeContext, source: ValueSource) -> Any:
    """The value a source names, or MISSING."""
    desk: ContentStore = view.desk
    if isinstance(source, FromInput):
        value = resolve_pointer(merge_goal_inputs(view.manifest.goal, view.state, desk), source.pointer)
        return value_of(view, source.otherwise) if value is MISSING and source.otherwise else value
    if isinstance(source, FromFact):
        fact = view.state.facts.get(source.fact)
        return MISSING if fact is None else resolve_pointer(desk.json(fact.digest), source.pointer)
    if isinstance(source, FromDraft):
        draft = view.state.draft
        return MISSING if draft is None else desk.text(draft, 20_000)
    if isinstance(source, FromRun):
        return str(view.manifest.line)
    return list(source.value) if isinstance(source.value, tuple) else source.value
