"""A drawing with a run's path lit: which boxes and lines it passed, where it is, where it failed."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.graph import CompiledGraph, GraphSpec
from orchestrator.core.readmodel.graph_layout.geometry import Box, Drawing, Line
from orchestrator.core.readmodel.graph_layout.sugiyama import layout_graph

Light = Literal["", "passed", "current", "failed"]


class LitBox(FrozenModel):
    """A box, how it is lit, how often the path came here, and the lines that leave it."""

    box: Box
    light: Light = ""
    visits: int = 0
    leaving: tuple[Line, ...] = ()

    @property
    def says(self) -> str:
        """Its state in words; no state is said by colour alone."""
        times = f", {self.visits} times" if self.visits > 1 else ""
        words = {"": "", "passed": "passed", "current": "the run is here", "failed": "the run failed here"}
        return f"{words[self.light]}{times}" if self.light else ""


class LitLine(FrozenModel):
    """A line and whether the path went along it."""

    line: Line
    lit: bool = False


class Picture(FrozenModel):
    """What the template shows. `lit` says whether any path is shown at all."""

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
    """Light `path` (node ids in the order they were passed) on the drawing of `graph`.

    `current` is where the run is, `failed` where it failed. Ids that the drawing does not know are left
    out.
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
        # What is lit is drawn last, over what is not.
        lines=tuple(
            sorted(
                (LitLine(line=line, lit=(line.source, line.target) in steps) for line in drawing.edges),
                key=lambda shown: shown.lit,
            )
        ),
        width=drawing.width, height=drawing.height, grouped=drawing.grouped, lit=bool(marks),
    )  # fmt: skip
