"""The order within each rank: barycentre sweeps down and up; the order with the fewest crossings holds."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from orchestrator.core.readmodel.graph_layout.layering import Plan

SWEEPS: Final = 6


def minimize_crossings(plan: Plan) -> list[list[int]]:
    """The ranks, each in its best order found."""
    above = [[plan.links[link].upper for link in links] for links in plan.above]
    below = [[plan.links[link].lower for link in links] for links in plan.below]
    alone = [not above[part] and not below[part] for part in range(len(plan.parts))]
    # What no line meets stands last in its rank, and keeps so.
    order = [sorted(layer, key=alone.__getitem__) for layer in plan.layers]
    places = [0] * len(plan.parts)
    for layer in order:
        _update_places(layer, places)
    best, fewest = list(order), count_crossings(order, below, places)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        for rank in range(1, len(order)) if down else range(len(order) - 2, -1, -1):
            order[rank] = _sort_by_barycenter(order[rank], above if down else below, places, alone)
            _update_places(order[rank], places)
        found = count_crossings(order, below, places)
        if found < fewest:
            best, fewest = list(order), found
    return best


def count_crossings(
    order: Sequence[Sequence[int]], below: Sequence[Sequence[int]], places: Sequence[int]
) -> int:
    """How many pairs of links cross."""
    total = 0
    for upper, _ in pairwise(order):
        seen: list[int] = []
        for part in upper:
            ends = [places[end] for end in below[part]]
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
    return total


def _update_places(layer: Sequence[int], places: list[int]) -> None:
    for place, part in enumerate(layer):
        places[part] = place


def _sort_by_barycenter(
    layer: Sequence[int], beside: Sequence[Sequence[int]], places: Sequence[int], alone: Sequence[bool]
) -> list[int]:
    """By the mean place of the neighbours; what has none keeps its place."""
    if len(layer) < 2:
        return list(layer)
    keys: dict[int, tuple[bool, float]] = {}
    for place, part in enumerate(layer):
        ends = beside[part]
        mean = sum([places[end] for end in ends]) / len(ends) if ends else float(place)
        keys[part] = (alone[part], mean)
    return sorted(layer, key=keys.__getitem__)
