"""What a drawing is made of. Lengths are CSS pixels, the origin is the top left corner."""

from typing import Final

from orchestrator.core.common.frozen_model import FrozenModel

Point = tuple[float, float]
# One letter of the picture's two sizes, on average. Text is measured so because the core knows no font.
LETTER: Final = 7.4
SMALL_LETTER: Final = 6.4
BOX_HEIGHT: Final = 44.0
MARGIN: Final = 16.0


class Box(FrozenModel):
    """A node, or a group of `members`, with its top left corner and size.

    `interrupts` lead here from anywhere; `leaving` and `entering` are the neighbours in drawing order.
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
        """The middle of the box."""
        return (round(self.x + self.w / 2, 1), round(self.y + self.h / 2, 1))

    @property
    def anchor(self) -> str:
        """Its name within a page."""
        return self.id.replace(" ", "-")

    @property
    def name_y(self) -> float:
        """The line the name stands on."""
        return round(self.y + 19, 1)

    @property
    def kind_y(self) -> float:
        """The line the kind stands on."""
        return round(self.y + 34, 1)


class Line(FrozenModel):
    """All edges from `source` to `target` as one line; `outcome` names their outcomes.

    `points` begin at the source's border and end at the target's: a straight piece follows every curved
    one. `loop` is an edge of a node to itself, `back` one that goes up.
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
        """The target's name within a page."""
        return self.target.replace(" ", "-")

    @property
    def path(self) -> str:
        """The line as the `d` of an SVG path."""
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
    """A drawn graph. `nodes` stand in reading order: from top to bottom, then from left to right.

    `grouped` says that the graph was too large, and each box of kind `group` stands for a phase of it.
    """

    nodes: tuple[Box, ...]
    edges: tuple[Line, ...]
    width: float
    height: float
    grouped: bool = False
