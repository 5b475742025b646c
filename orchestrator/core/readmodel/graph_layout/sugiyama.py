"""Layered layout: longest-path ranks, shared joints for long edges, barycenter sweeps, then columns.

All long edges into one node share one joint per rank, so that they arrive as one trunk. A graph with many
failures that end in the same place therefore stays readable, and large graphs stay cheap.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from orchestrator.core.domain.graph import CompiledGraph, GraphSpec
from orchestrator.core.readmodel.graph_layout.clustering import LARGEST, Pair, cluster_graph
from orchestrator.core.readmodel.graph_layout.coordinates import assign_x_coordinates
from orchestrator.core.readmodel.graph_layout.crossing_reduction import minimize_crossings
from orchestrator.core.readmodel.graph_layout.geometry import (
    BOX_HEIGHT,
    LETTER,
    MARGIN,
    SMALL_LETTER,
    Box,
    Drawing,
    Line,
    Point,
)
from orchestrator.core.readmodel.graph_layout.layering import Plan, build_layer_plan

GAP: Final = 46.0
LABEL_LINE: Final = 13.0
LABEL_LINES: Final = 6
LABEL_LETTERS: Final = 26
LOOP: Final = 30.0
SHAPES: Final[Mapping[str, str]] = {
    "terminate": "end",
    "finalize": "end",
    "approval": "person",
    "ask_user": "person",
    "escalate": "person",
    "branch": "choice",
    "check_tool": "choice",
    "check_completion": "choice",
    "invoke_tool": "tool",
    "tool": "tool",
    "group": "group",
}
MODELS: Final = ("act", "respond", "plan", "synthesize", "critique", "repair", "compress")


class BorderPoint(NamedTuple):
    """The x at which a link meets the border of its upper and of its lower part."""

    upper: float
    lower: float


def layout_graph(graph: CompiledGraph | GraphSpec) -> Drawing:
    """Lay out a graph. Above 200 nodes, its phases are drawn instead of its nodes."""
    spec = graph.spec if isinstance(graph, CompiledGraph) else graph
    sketch = cluster_graph(spec)
    plan = build_layer_plan(sketch)
    order = minimize_crossings(plan)
    widths = _compute_widths(plan)
    centres = assign_x_coordinates(plan, order, widths)
    return _PointLayout(plan, order, widths, centres).whole(large=len(spec.nodes) > LARGEST)


def shape_of(kind: str) -> str:
    """Return the shape of a kind's boxes, so that a kind is recognizable without its color."""
    return SHAPES.get(kind, "model" if kind in MODELS else "plain")


def _compute_widths(plan: Plan) -> list[float]:
    """Return the width of each part.

    A node that leads to itself has room for its loop on both sides, which keeps its box in the middle.
    """
    found: list[float] = []
    for part in plan.parts:
        if not part.real:
            found.append(14.0)
            continue
        text = max(len(part.node) * LETTER, len(plan.sketch.nodes[part.node].kind) * SMALL_LETTER) + 44
        found.append(min(max(text, 84.0), 320.0) + (2 * LOOP if part.node in plan.loops else 0))
    return found


class _PointLayout:
    """The last step, from columns to points; it holds only the data that its parts share."""

    def __init__(
        self, plan: Plan, order: Sequence[Sequence[int]], widths: Sequence[float], centres: Sequence[float]
    ) -> None:
        self.plan, self.order, self.centres = plan, order, centres
        self.halves = [
            width / 2 - (LOOP if part.real and part.node in plan.loops else 0)
            for part, width in zip(plan.parts, widths, strict=True)
        ]
        self.place = {part.node: at for at, part in enumerate(plan.parts) if part.real}
        self.nails = self._nails()
        self.labels, self.rows = self._label_rows()
        self.tops = self._tops()

    def whole(self, *, large: bool) -> Drawing:
        """Assemble the drawing."""
        boxes = tuple(self._box(at) for layer in self.order for at in layer if self.plan.parts[at].real)
        lines = tuple(self._line(pair) for pair in self.plan.chains)
        right = max([box.x + box.w for box in boxes] or [0.0])
        right = max([right, *[x for line in lines for x, _ in line.points]])
        right = max([right, *[line.label[0] + _measure_label_width(line.label_text) / 2 for line in lines]])
        bottom = max([box.y + box.h for box in boxes] or [0.0])
        return Drawing(
            nodes=boxes,
            edges=lines,
            width=_round_to_tenth(right + MARGIN),
            height=_round_to_tenth(bottom + MARGIN),
            grouped=large,
        )

    def _box(self, at: int) -> Box:
        sketch, part = self.plan.sketch, self.plan.parts[at]
        node = sketch.nodes[part.node]
        half = self.halves[at]
        return Box(
            id=part.node,
            kind=node.kind,
            shape=shape_of(node.kind),
            x=_round_to_tenth(self.centres[at] - half),
            y=_round_to_tenth(self.tops[part.rank]),
            w=_round_to_tenth(half * 2),
            h=BOX_HEIGHT,
            entry=part.node == sketch.entry,
            interrupts=node.interrupts,
            members=node.members,
        )

    def _nails(self) -> list[BorderPoint]:
        """Spread the links of each side of a box along its border, in the order of their other ends."""
        upper, lower = [0.0] * len(self.plan.links), [0.0] * len(self.plan.links)
        for at, part in enumerate(self.plan.parts):
            below = [(self.centres[self.plan.links[link].lower], link) for link in self.plan.below[at]]
            above = [(self.centres[self.plan.links[link].upper], link) for link in self.plan.above[at]]
            self._spread(at, below, upper, real=part.real)
            self._spread(at, above, lower, real=part.real)
        return [BorderPoint(*both) for both in zip(upper, lower, strict=True)]

    def _spread(self, at: int, ends: list[tuple[float, int]], nails: list[float], *, real: bool) -> None:
        centre = self.centres[at]
        step = min(26.0, (2 * self.halves[at] - 24) / max(1, len(ends) - 1)) if real else 0.0
        start = centre - step * (len(ends) - 1) / 2
        for place, (_, link) in enumerate(sorted(ends)):
            nails[link] = start + step * place

    def _beside(self, pair: Pair) -> int:
        """Return the link that carries an edge's label: the one at its source."""
        chain = self.plan.chains[pair]
        return chain[-1] if self.plan.back[pair] else chain[0]

    def _rank(self, link: int) -> int:
        return self.plan.parts[self.plan.links[link].upper].rank

    def _label_rows(self) -> tuple[dict[Pair, int], dict[int, int]]:
        """Assign each label a row of the gap at its source, and return the number of rows of each gap.

        Each gap has as few rows as keep its labels apart.
        """
        gaps: dict[int, list[tuple[Pair, BorderPoint, float]]] = {}
        for pair, chain in self.plan.chains.items():
            if chain:
                link = self._beside(pair)
                wide = _measure_label_width(_truncate_label(self.plan.sketch.label(pair)))
                gaps.setdefault(self._rank(link), []).append((pair, self.nails[link], wide))
        places: dict[Pair, int] = {}
        rows: dict[int, int] = {}
        for rank in sorted(gaps):
            for count in range(1, LABEL_LINES + 1):
                found, apart = _assign_label_rows(gaps[rank], count)
                if apart:
                    break
            places.update(found)
            rows[rank] = count
        return places, rows

    def _tops(self) -> list[float]:
        """Return the y of each rank's boxes; a gap is as high as its labels need."""
        tops, y = [], MARGIN
        for rank in range(len(self.order)):
            tops.append(y)
            y += BOX_HEIGHT + _compute_gap_height(self.rows.get(rank, 0))
        return tops

    def _line(self, pair: Pair) -> Line:
        sketch = self.plan.sketch
        source, target = pair
        back = self.plan.back.get(pair, False)
        points, label = self._loop(source) if source == target else self._points(pair, back)
        return Line(
            source=source,
            target=target,
            outcome=", ".join(sketch.outcomes[pair]),
            outcomes=sketch.outcomes[pair],
            guarded=pair in sketch.guarded,
            back=back,
            loop=source == target,
            points=tuple((_round_to_tenth(x), _round_to_tenth(y)) for x, y in points),
            label=(_round_to_tenth(label[0]), _round_to_tenth(label[1])),
            label_text=_truncate_label(sketch.label(pair)),
        )

    def _points(self, pair: Pair, back: bool) -> tuple[list[Point], Point]:
        """Follow the chain down: curved across a gap, straight past the boxes of a rank."""
        points: list[Point] = []
        chain = self.plan.chains[pair]
        first, last = chain[0], chain[-1]
        for link in chain:
            upper, lower = self.nails[link]
            if upper == lower and link not in {first, last}:
                # The trunk goes straight down, so the previous piece continues.
                continue
            rank = self._rank(link)
            points += ((upper, self.tops[rank] + BOX_HEIGHT), (lower, self.tops[rank + 1]))
        beside = self._beside(pair)
        rank, row = self._rank(beside), self.labels[pair]
        y = self.tops[rank] + BOX_HEIGHT + _row_y(row) + 4
        return (points[::-1] if back else points), (_on_curve(self.nails[beside], row, self.rows[rank]), y)

    def _loop(self, node: str) -> tuple[list[Point], Point]:
        """Return a loop at the right side of the box."""
        at = self.place[node]
        x = self.centres[at] + self.halves[at]
        y = self.tops[self.plan.parts[at].rank]
        low, high = y + BOX_HEIGHT * 0.72, y + BOX_HEIGHT * 0.28
        return [(x, low), (x + LOOP, low + 8), (x + LOOP, high - 8), (x, high)], (x + 12, y - 3)


def _compute_gap_height(rows: int) -> float:
    """Return the height between two ranks whose lines carry `rows` rows of labels."""
    return GAP + LABEL_LINE * rows


def _row_y(row: int) -> float:
    """Return the distance from the boxes down to the middle of a row of labels."""
    return 22.0 + LABEL_LINE * row


def _assign_label_rows(
    labels: Sequence[tuple[Pair, BorderPoint, float]], rows: int
) -> tuple[dict[Pair, int], bool]:
    """Assign the labels of a gap to `rows` rows from left to right.

    The second result is whether no label overlaps another.
    """
    ends = [float("-inf")] * rows
    found: dict[Pair, int] = {}
    apart = True
    for pair, nail, wide in sorted(labels, key=lambda label: (label[1].upper + label[1].lower, label[0])):
        spots = [_on_curve(nail, row, rows) - wide / 2 for row in range(rows)]
        free = [row for row in range(rows) if ends[row] <= spots[row]]
        row = free[0] if free else min(range(rows), key=lambda at: (ends[at] - spots[at], at))
        apart = apart and bool(free)
        ends[row] = spots[row] + wide
        found[pair] = row
    return found, apart


def _on_curve(nail: BorderPoint, row: int, rows: int) -> float:
    """Return the x of the curve between two nails in the middle of a row."""
    return nail.upper + (nail.lower - nail.upper) * _compute_curve_progress(row, rows)


@cache
def _compute_curve_progress(row: int, rows: int) -> float:
    """Return the horizontal progress (0 to 1) of a curve in the middle of a row.

    The curve's y is 1.5t - 1.5t² + t³ of its height, because its control points are in the middle. Its x is
    3t² - 2t³ of its width.
    """
    height = t = _row_y(row) / _compute_gap_height(rows)
    for _ in range(6):
        t -= (1.5 * t - 1.5 * t * t + t * t * t - height) / (1.5 - 3 * t + 3 * t * t)
    return t * t * (3 - 2 * t)


def _measure_label_width(text: str) -> float:
    return len(text) * SMALL_LETTER + 6


def _truncate_label(text: str) -> str:
    return text if len(text) <= LABEL_LETTERS else text[: LABEL_LETTERS - 1] + "…"


def _round_to_tenth(number: float) -> float:
    return round(number, 1) + 0.0
