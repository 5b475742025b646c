"""The shipped workflows, boundaries and prompts, read from the package's own files (R-GRAPH-7, R-GRAPH-11).

What a database holds was published from here or by a tenant; nothing at run time reads these files.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml
from pydantic import Field, TypeAdapter

from orchestrator.core.common.frozen_model import FrozenModel, Slug, Text
from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.boundary_change import read_boundary
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.yaml_reading import read_yaml

HERE = Path(__file__).parent
PROFILE_BOUNDARIES: Final = ("coding", "procurement", "research", "sre", "support")


class SingleUseValue(FrozenModel):
    """A value in a starter's goal that serves once, others like it, and what to say when none is left."""

    value: str = Field(min_length=1)
    others: tuple[str, ...] = Field(min_length=1)
    used_up: Text = Field(min_length=1)


class StarterFile(FrozenModel):
    """A starter as its file has it."""

    slug: Slug
    title: str = Field(min_length=1, max_length=80)
    what: Text = Field(min_length=1)
    goal: Goal
    once: SingleUseValue | None = None


class Starter(StarterFile):
    """A ready goal of a shipped workflow: one click away, with a line on what will happen (R-TOOL-23)."""

    workflow: Slug

    def goals(self) -> tuple[Goal, ...]:
        """The goal, and where a value of it serves once the same with each other value, in order."""
        if self.once is None:
            return (self.goal,)
        return (
            self.goal,
            *(_with_replaced_value(self.goal, self.once.value, other) for other in self.once.others),
        )


READY = TypeAdapter(tuple[StarterFile, ...])


@cache
def load_bundled_workflows() -> Mapping[str, GraphSpec]:
    """Every shipped workflow by its slug. Raises pydantic's ValidationError for a file that is none."""
    found = (GraphSpec.model_validate(document) for document in _load_documents("workflows"))
    return MappingProxyType({spec.slug: spec for spec in found})


@cache
def load_bundled_boundaries() -> Mapping[str, Boundary]:
    """Every shipped boundary by its slug, each with the budget of the profile that its file names (spec
    3).
    """
    found = (read_boundary(document) for document in _load_documents("boundaries"))
    return MappingProxyType({boundary.slug: boundary for boundary in found})


@cache
def plain_boundaries() -> Mapping[str, Boundary]:
    """The boundaries of a tenant without the demonstration: its own starter, and the five profiles."""
    own = {one.slug: one for one in map(read_boundary, _load_documents("boundaries/plain"))}
    return MappingProxyType({slug: load_bundled_boundaries()[slug] for slug in PROFILE_BOUNDARIES} | own)


@cache
def load_bundled_prompts() -> Mapping[str, str]:
    """Every shipped prompt template by its name."""
    return MappingProxyType(
        {path.stem: path.read_text(encoding="utf-8") for path in sorted((HERE / "prompts").glob("*.md"))}
    )


@cache
def load_example_goals() -> tuple[Starter, ...]:
    """The ready goals, by workflow and then in the order of its file, which is named after the workflow.

    They stand beside the workflows and not in them: a starter that changes is no new version. Raises
    pydantic's ValidationError for a file that holds none.
    """
    files = sorted((HERE / "example_goals").glob("*.yaml"))
    return tuple(
        Starter(workflow=path.stem, **{name: getattr(ready, name) for name in StarterFile.model_fields})
        for path in files
        for ready in READY.validate_python(_parse_yaml_file(path))
    )


def get_bundled_workflow(slug: str) -> GraphSpec:
    """The shipped workflow `slug`. Raises KeyError."""
    return load_bundled_workflows()[slug]


def get_bundled_boundary(slug: str) -> Boundary:
    """The shipped boundary `slug`. Raises KeyError."""
    return load_bundled_boundaries()[slug]


def _with_replaced_value(goal: Goal, value: str, other: str) -> Goal:
    """The goal about another thing: in its objective and among its inputs."""
    inputs = {name: other if given == value else given for name, given in goal.inputs.items()}
    return goal.evolve(objective=goal.objective.replace(value, other), inputs=inputs)


def read_document(text: str) -> dict[str, Any]:
    """A workflow or boundary document in YAML (JSON is YAML too). Raises yaml.YAMLError, TypeError for
    no mapping.
    """
    document = read_yaml(text)
    if not isinstance(document, dict):
        message = "the document is no mapping"
        raise TypeError(message)
    return document


def _load_documents(folder: str) -> list[dict[str, Any]]:
    return [_parse_yaml_file(path) for path in sorted((HERE / folder).glob("*.yaml"))]


def _parse_yaml_file(path: Path) -> Any:
    # What ships is read at every start: the parser in C takes a tenth of the time.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
