"""Elements of a drawing. Lengths are CSS pixels, the origin is the top left corner."""

from typing import Final

from orchestrator.core.common.frozen_model import FrozenModel

Point = tuple[float, float]
# Average width of a letter in the two text sizes. Text is measured this way because the core knows no font.
LETTER: Final = 7.4
SMALL_LETTER: Final = 6.4
BOX_HEIGHT: Final = 44.0
MARGIN: Final = 16.0


class Box(FrozenModel):
    """A node, or a group of `members`, with its top left corner and size.

    `interrupts` are the interrupts that lead to this box from anywhere.
    """

    id: str
    kind: str
    shape: str
    x: float
    y: float
    w: float
    h: float
    entry: bool = False
    interrupts: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def centre(self) -> Point:
        """The center of the box."""
        return (round(self.x + self.w / 2, 1), round(self.y + self.h / 2, 1))

    @property
    def anchor(self) -> str:
        """The id of the box within a page."""
        return self.id.replace(" ", "-")

    @property
    def name_y(self) -> float:
        """The y of the baseline of the name."""
        return round(self.y + 19, 1)

    @property
    def kind_y(self) -> float:
        """The y of the baseline of the kind."""
        return round(self.y + 34, 1)


class Line(FrozenModel):
    """All edges from `source` to `target` as one line; `outcome` names their outcomes.

    `points` begin at the source's border and end at the target's: a straight piece follows every curved
    piece. `loop` is an edge of a node to itself, `back` an edge that goes up.
    """

    source: str
    target: str
    outcome: str
    outcomes: tuple[str, ...]
    guarded: bool = False
    back: bool = False
    loop: bool = False
    points: tuple[Point, ...]
    label: Point
    label_text: str

    @property
    def target_anchor(self) -> str:
        """The id of the target within a page."""
        return self.target.replace(" ", "-")

    @property
    def path(self) -> str:
        """The line as the `d` attribute of an SVG path."""
        (x, y), *rest = self.points
        if self.loop:
            numbers = " ".join(f"{px:g} {py:g}" for px, py in rest)
            return f"M{x:g} {y:g}C{numbers}"
        pieces = [f"M{x:g} {y:g}"]
        for at, (px, py) in enumerate(rest):
            if at % 2:
                pieces.append(f"V{py:g}")
            else:
                middle = (y + py) / 2
                pieces.append(f"C{x:g} {middle:g} {px:g} {middle:g} {px:g} {py:g}")
            x, y = px, py
        return "".join(pieces)


class Drawing(FrozenModel):
    """A drawn graph. `nodes` are in reading order: from top to bottom, then from left to right.

    `grouped`: the graph was too large, and each box of kind `group` represents a phase of it.
    """

    nodes: tuple[Box, ...]
    edges: tuple[Line, ...]
    width: float
    height: float
    grouped: bool = False
