"""The x coordinates: each rank as near to the middle of its neighbors as order and gaps allow."""

from collections.abc import Sequence
from typing import Final

from orchestrator.core.readmodel.graph_layout.geometry import MARGIN
from orchestrator.core.readmodel.graph_layout.layering import Plan

BETWEEN: Final = 26.0
ROUNDS: Final = 3
STRAIGHT: Final = 6.0
# Weight of a node that only an interrupt leads to: it is placed next to its neighbors, wherever they are.
LONELY: Final = 0.001


def assign_x_coordinates(plan: Plan, order: Sequence[Sequence[int]], widths: Sequence[float]) -> list[float]:
    """Return the center of each part, with the leftmost edge at the margin."""
    centres = [0.0] * len(plan.parts)
    steps = [_pack_layer(layer, widths, centres) for layer in order]
    pulls = _compute_pulls(plan, down=True), _compute_pulls(plan, down=False)
    for turn in range(2 * ROUNDS):
        ranks = range(len(order)) if turn % 2 == 0 else range(len(order) - 1, -1, -1)
        for rank in ranks:
            wishes = [_compute_target_position(pulls[turn % 2][part], centres, part) for part in order[rank]]
            _solve_layer_positions(order[rank], wishes, steps[rank], centres)
    left = min([x - width / 2 for x, width in zip(centres, widths, strict=True)], default=0.0)
    return [x - left + MARGIN for x in centres]


def _pack_layer(layer: Sequence[int], widths: Sequence[float], centres: list[float]) -> list[float]:
    """Place a rank's parts as close as allowed, and return the offset of each center from the first."""
    offsets: list[float] = []
    at = 0.0
    for place, part in enumerate(layer):
        if place:
            at += (widths[layer[place - 1]] + widths[part]) / 2 + BETWEEN
        offsets.append(at)
        centres[part] = at
    return offsets


def _compute_pulls(plan: Plan, *, down: bool) -> list[tuple[list[int], float]]:
    """Return, for each part, the parts that it should be aligned with above (or below), and the weight."""
    found: list[tuple[list[int], float]] = []
    for at, part in enumerate(plan.parts):
        links = plan.above[at] if down else plan.below[at]
        ends = [plan.links[link].upper if down else plan.links[link].lower for link in links]
        if not plan.above[at] and not plan.below[at]:
            found.append((ends, LONELY))
        elif part.real:
            found.append((ends, 1.0))
        else:
            # The trunk's own joint first, so that trunks are straight.
            trunk = [end for end in ends if plan.parts[end]._replace(rank=part.rank) == part]
            found.append((trunk[:1], STRAIGHT) if trunk else (ends, 2.0))
    return found


def _compute_target_position(
    pull: tuple[list[int], float], centres: Sequence[float], part: int
) -> tuple[float, float]:
    ends, weight = pull
    if len(ends) == 1:
        return centres[ends[0]], weight
    if ends:
        return sum([centres[end] for end in ends]) / len(ends), weight
    return (0.0, LONELY) if weight == LONELY else (centres[part], 0.2)


def _solve_layer_positions(
    layer: Sequence[int],
    wishes: Sequence[tuple[float, float]],
    offsets: Sequence[float],
    centres: list[float],
) -> None:
    """Solve the least squares of the target positions under order and gaps.

    Pools of neighbors move as one.
    """
    pools: list[tuple[float, float, int]] = []
    for (wish, weight), offset in zip(wishes, offsets, strict=True):
        mean, total, count = wish - offset, weight, 1
        while pools and pools[-1][0] > mean:
            before, held, several = pools.pop()
            mean = (before * held + mean * total) / (held + total)
            total += held
            count += several
        pools.append((mean, total, count))
    at = 0
    for mean, _, count in pools:
        for place in range(at, at + count):
            centres[layer[place]] = mean + offsets[place]
        at += count
