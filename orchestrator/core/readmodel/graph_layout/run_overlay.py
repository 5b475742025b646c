"""A drawing with a run's path highlighted: visited boxes and lines, the current and the failed node."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.graph import CompiledGraph, GraphSpec
from orchestrator.core.readmodel.graph_layout.geometry import Box, Drawing, Line
from orchestrator.core.readmodel.graph_layout.sugiyama import layout_graph

Light = Literal["", "passed", "current", "failed"]


class LitBox(FrozenModel):
    """A box, its highlighting, its number of visits, and the lines that leave it."""

    box: Box
    light: Light = ""
    visits: int = 0
    leaving: tuple[Line, ...] = ()

    @property
    def says(self) -> str:
        """The state of the box in words, because color alone must not convey a state."""
        times = f", {self.visits} times" if self.visits > 1 else ""
        words = {"": "", "passed": "passed", "current": "the run is here", "failed": "the run failed here"}
        return f"{words[self.light]}{times}" if self.light else ""


class LitLine(FrozenModel):
    """A line and whether the path used it."""

    line: Line
    lit: bool = False


class Picture(FrozenModel):
    """The content that the template shows. `lit`: a path is highlighted."""

    boxes: tuple[LitBox, ...]
    lines: tuple[LitLine, ...]
    width: float
    height: float
    grouped: bool
    lit: bool


def overlay_run_path(
    graph: CompiledGraph | GraphSpec | Drawing,
    *,
    path: Sequence[str] = (),
    current: str | None = None,
    failed: str | None = None,
) -> Picture:
    """Highlight `path` (node ids in the order of their visits) on the drawing of `graph`.

    `current` is the node where the run is, `failed` the node where it failed. Ids that the drawing does not
    contain are left out.
    """
    drawing = graph if isinstance(graph, Drawing) else layout_graph(graph)
    boxes = {member: box.id for box in drawing.nodes for member in (box.members or (box.id,))}
    seen = [boxes[node] for node in path if node in boxes]
    visits = {box.id: 0 for box in drawing.nodes}
    for node in seen:
        visits[node] += 1
    steps = dict.fromkeys(pairwise(seen))
    marks: dict[str, Light] = {node: "passed" for node, count in visits.items() if count}
    if current in boxes:
        marks[boxes[current]] = "current"
    if failed in boxes:
        marks[boxes[failed]] = "failed"
    leaving: dict[str, list[Line]] = {box.id: [] for box in drawing.nodes}
    for line in drawing.edges:
        leaving[line.source].append(line)
    return Picture(
        boxes=tuple(
            LitBox(
                box=box, light=marks.get(box.id, ""), visits=visits[box.id], leaving=tuple(leaving[box.id])
            )
            for box in drawing.nodes
        ),
        # Highlighted lines are drawn last, over the others.
        lines=tuple(
            sorted(
                (LitLine(line=line, lit=(line.source, line.target) in steps) for line in drawing.edges),
                key=lambda shown: shown.lit,
            )
        ),
        width=drawing.width, height=drawing.height, grouped=drawing.grouped, lit=bool(marks),
    )  # fmt: skip
