"""A drawing can be read: nothing overlaps, every line meets its boxes, the same graph is the same picture."""

from itertools import combinations, pairwise
from time import process_time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from orchestrator import bundled_content
from orchestrator.core.domain.graph import CompiledGraph, GraphSpec
from orchestrator.core.readmodel.graph_layout import Box, Drawing, Line, layout_graph, overlay_run_path
from tests.factories.graphs import graphs
from tests.proves import proves

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
LENIENT = 0.11  # a tenth of a pixel is what coordinates are rounded to


def chained(count: int, *, kinds: tuple[str, ...] = ("respond",), width: int = 1) -> GraphSpec:
    """A graph of `count` nodes in `width` columns, with a way back from every tenth and one common end."""
    nodes = [{"id": f"n{at}", "kind": kinds[at % len(kinds)]} for at in range(count - 1)]
    edges: list[dict[str, Any]] = []
    for at in range(count - 1):
        follower = at + width
        target = f"n{follower}" if follower < count - 1 else "end"
        edges.append({"source": f"n{at}", "outcome": "drafted", "target": target})
        if at % 3 == 0:
            edges.append({"source": f"n{at}", "outcome": "failed", "target": "end"})
        if at % 10 == 9:
            edges.append({"source": f"n{at}", "outcome": "empty", "target": f"n{at - 7}"})
    return GraphSpec.model_validate(
        {
            "slug": "chained", "tier": 4, "boundary": "b", "entry": "n0", "interrupts": {"cancelled": "end"},
            "nodes": [*nodes, {"id": "end", "kind": "terminate"}], "edges": edges,
        }
    )  # fmt: skip


def apart(one: Box, other: Box) -> bool:
    """Whether two boxes share no point."""
    beside = one.x + one.w < other.x or other.x + other.w < one.x
    return beside or one.y + one.h < other.y or other.y + other.h < one.y


def on_border(box: Box, point: tuple[float, float]) -> bool:
    """Whether a point lies on the border of a box."""
    x, y = point
    inside = (
        box.x - LENIENT <= x <= box.x + box.w + LENIENT and box.y - LENIENT <= y <= box.y + box.h + LENIENT
    )
    edges = (x - box.x, x - box.x - box.w, y - box.y, y - box.y - box.h)
    return inside and any(abs(gap) <= LENIENT for gap in edges)


def straight(line: Line) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The vertical pieces of a line, which pass the ranks' boxes."""
    inner = line.points[1:-1]
    return list(zip(inner[::2], inner[1::2], strict=True))


def assert_readable(drawing: Drawing) -> None:
    """What holds of every drawing."""
    boxes = {box.id: box for box in drawing.nodes}
    for one, other in combinations(drawing.nodes, 2):
        assert apart(one, other), (one.id, other.id)
    for line in drawing.edges:
        assert on_border(boxes[line.source], line.points[0]), line
        assert on_border(boxes[line.target], line.points[-1]), line
        if line.loop:
            continue
        for (x, top), (_, bottom) in straight(line):
            low, high = min(top, bottom), max(top, bottom)
            crossed = [
                box.id
                for box in drawing.nodes
                if box.x < x < box.x + box.w and box.y < high - LENIENT and low + LENIENT < box.y + box.h
            ]
            assert not crossed, (line.source, line.target, crossed)
    for x, y in (point for line in drawing.edges for point in line.points):
        assert 0 <= x <= drawing.width
        assert 0 <= y <= drawing.height


@proves("R-GRAPH-4", part="drawing: shipped workflows")
@pytest.mark.parametrize("slug", sorted(bundled_content.load_bundled_workflows()))
def test_a_shipped_workflow_is_drawn_whole(slug: str) -> None:
    spec = bundled_content.load_bundled_workflows()[slug]
    drawing = layout_graph(spec)
    assert_readable(drawing)
    assert {box.id for box in drawing.nodes} == {node.id for node in spec.nodes}
    drawn = {(line.source, outcome, line.target) for line in drawing.edges for outcome in line.outcomes}
    assert drawn == {(edge.source, edge.outcome, edge.target) for edge in spec.edges}
    assert {name for box in drawing.nodes for name in box.interrupts} == {i.value for i in spec.interrupts}


@proves("R-GRAPH-4", part="drawing: any graph")
@given(graphs(extra=6))
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
def test_any_graph_is_readable_and_drawn_the_same_again(graph: CompiledGraph) -> None:
    drawing = layout_graph(graph)
    assert_readable(drawing)
    assert layout_graph(graph.spec).model_dump_json() == drawing.model_dump_json()


def test_reading_order_is_from_top_to_bottom_then_from_left_to_right() -> None:
    boxes = layout_graph(bundled_content.load_bundled_workflows()["tool-loop"]).nodes
    assert [(box.y, box.x) for box in boxes] == sorted((box.y, box.x) for box in boxes)
    assert boxes[0].entry


def test_lines_go_down_but_for_the_ways_back() -> None:
    for line in layout_graph(bundled_content.load_bundled_workflows()["support-refund"]).edges:
        if not line.loop:
            assert (line.points[0][1] > line.points[-1][1]) is line.back


@pytest.mark.parametrize("width", [4, 12, 30])
def test_two_hundred_nodes_take_little_more_than_their_share_of_25(width: int) -> None:
    def took(spec: GraphSpec) -> float:
        begun = process_time()
        layout_graph(spec)
        return process_time() - begun

    few, many = (min(took(chained(nodes, width=width)) for _ in range(7)) for nodes in (25, 200))
    drawing = layout_graph(chained(200, width=width))
    assert len(drawing.nodes) == 200
    assert_readable(drawing)
    # Eight times the nodes: what grows with their square would take 64 times as long.
    assert many < 32 * few


def test_above_two_hundred_nodes_the_phases_are_drawn() -> None:
    kinds = ("respond",) * 20 + ("tool",) * 20
    drawing = layout_graph(chained(400, kinds=kinds))
    assert drawing.grouped
    assert len(drawing.nodes) <= 200
    assert_readable(drawing)
    members = [member for box in drawing.nodes for member in (box.members or (box.id,))]
    assert sorted(members) == sorted([*(f"n{at}" for at in range(399)), "end"])
    assert any(box.kind == "group" for box in drawing.nodes)


def test_where_even_the_parts_are_too_many_the_phases_alone_are_drawn() -> None:
    drawing = layout_graph(chained(450, kinds=("respond", "tool")))
    assert [box.id for box in drawing.nodes] == ["thinking", "calling", "ends"]


def test_a_graph_with_edges_to_nowhere_is_drawn_without_them() -> None:
    spec = chained(5)
    lost = spec.edges[0].evolve(target="nowhere")
    assert_readable(layout_graph(spec.evolve(edges=(*spec.edges, lost))))


@proves("R-GRAPH-4", part="lit path")
def test_a_path_lights_its_boxes_and_lines_and_says_so_in_words() -> None:
    spec = bundled_content.load_bundled_workflows()["tool-loop"]
    path = ("intake", "classify", "scope", "init", "act", "check", "check", "gate", "gone")
    shown = overlay_run_path(spec, path=path, current="gate")
    lit = {(line.line.source, line.line.target) for line in shown.lines if line.lit}
    assert lit == set(pairwise(path[:-1]))
    states = {box.box.id: box.says for box in shown.boxes}
    assert states["gate"] == "the run is here"
    assert states["check"] == "passed, 2 times"
    assert states["act"] == "passed"
    assert not states["end-success"]
    assert [line.lit for line in shown.lines] == sorted(line.lit for line in shown.lines)


def test_a_failure_is_said_where_it_happened_and_a_plain_drawing_says_nothing() -> None:
    spec = bundled_content.load_bundled_workflows()["tool-loop"]
    failed = overlay_run_path(layout_graph(spec), path=("intake", "end-invalid"), failed="end-invalid")
    assert {box.box.id: box.says for box in failed.boxes}["end-invalid"] == "the run failed here"
    plain = overlay_run_path(spec)
    assert not plain.lit
    assert {box.says for box in plain.boxes} == {""}


def test_a_grouped_picture_lights_the_group_of_a_node() -> None:
    shown = overlay_run_path(chained(450, kinds=("respond", "tool")), path=("n0", "n1", "n2"), current="n2")
    assert {box.box.id: box.light for box in shown.boxes} == {
        "thinking": "current", "calling": "passed", "ends": "",
    }  # fmt: skip
