"""A workflow's source text: YAML (JSON is YAML too) with the line of every node and edge, so that a fault can
be shown where it is (R-GRAPH-2, R-GRAPH-4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.core.compiler.checks.diagnostics import make_diagnostic
from orchestrator.core.compiler.compiler import build_compile_error
from orchestrator.yaml_reading import check_mappings

LONGEST = 200_000
DEEPEST = 40
ENDLESS = "The text is nested too deeply."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document with where its parts stand. Lines count from 1."""

    text: str
    document: dict[str, Any]
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, found: Mapping[str, Any]) -> int | None:
        """The line of a fault: of its edge, its node, or the key that its sentence begins with."""
        edge, node = found.get("edge"), found.get("node")
        if edge and edge in self.edges:
            return self.edges[edge]
        if node and node in self.nodes:
            return self.nodes[node]
        return self._of_sentence(str(found.get("sentence", "")))

    def _of_sentence(self, sentence: str) -> int | None:
        place = sentence.split(":", 1)[0]
        while place:
            if place in self.places:
                return self.places[place]
            place = place.rpartition(".")[0]
        return self.keys.get("slug")


def read_source(text: str) -> Source:
    """Read a source text. Raises CompileFailed, with the line, for what is no plain YAML mapping.

    Aliases are refused: a few lines of them stand for gigabytes.
    """
    if len(text) > LONGEST:
        raise _make_parse_error(f"The text is longer than {LONGEST} characters.", None)
    try:
        _check_plain_yaml(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            check_mappings(root)
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "unreadable"
        raise _make_parse_error(f"This is no YAML: {problem}"[:300], _to_line_number(mark)) from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise _make_parse_error(
            ENDLESS if isinstance(error, RecursionError) else f"A value is wrong: {error}"[:300], None
        ) from None
    if not isinstance(document, dict) or not isinstance(root, yaml.MappingNode):
        raise _make_parse_error("The document is no mapping of names to values.", 1)
    return _build_located_source(text, document, root)


def _check_plain_yaml(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _make_parse_error("Aliases (*name) are not taken here.", _to_line_number(event.start_mark))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _make_parse_error(ENDLESS, _to_line_number(event.start_mark))


def _to_line_number(mark: Any) -> int | None:
    return mark.line + 1 if mark is not None else None


def _make_parse_error(sentence: str, line: int | None) -> Exception:
    error = build_compile_error((make_diagnostic(0, sentence),))
    error.data["faults"][0]["line"] = line
    return error


def with_lines(faults: list[dict[str, Any]], source: Source) -> list[dict[str, Any]]:
    """The faults, each with its line in the source or None."""
    return [{**found, "line": source.line_of(found)} for found in faults]


def _build_located_source(text: str, document: dict[str, Any], root: yaml.MappingNode) -> Source:
    keys = {str(key.value): key.start_mark.line + 1 for key, _ in root.value}
    places: dict[str, int] = {}
    nodes: dict[str, int] = {}
    edges: dict[str, int] = {}
    _collect_line_numbers(root, "", places)
    for at, node in enumerate(_extract_items(document, "nodes")):
        if isinstance(node, dict) and isinstance(node.get("id"), str):
            nodes[node["id"]] = places.get(f"nodes.{at}", 1)
    for at, edge in enumerate(_extract_items(document, "edges")):
        if isinstance(edge, dict):
            edges.setdefault(_edge_name(edge), places.get(f"edges.{at}", 1))
    return Source(text=text, document=document, nodes=nodes, edges=edges, keys=keys, places=places)


def _extract_items(document: Mapping[str, Any], name: str) -> list[Any]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _edge_name(edge: Mapping[str, Any]) -> str:
    """As checks/fault.py writes an edge."""
    guard = edge.get("guard")
    named = f" [{guard.get('name')}]" if isinstance(guard, dict) else ""
    return f"{edge.get('source')}.{edge.get('outcome')}{named} -> {edge.get('target')}"


def _collect_line_numbers(node: yaml.Node, place: str, places: dict[str, int]) -> None:
    places[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _collect_line_numbers(value, _join_path(place, str(key.value)), places)
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            _collect_line_numbers(value, _join_path(place, str(at)), places)


def _join_path(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def format_workflow_yaml(document: Mapping[str, Any]) -> str:
    """A document as YAML text, in the order of its keys: what a published version is shown as."""
    text: str = yaml.safe_dump(
        dict(document), sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return text
