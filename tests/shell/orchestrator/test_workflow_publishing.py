"""Publishing a workflow from its source: every fault at its line, nothing changed by a faulty one
(R-GRAPH-2, R-GRAPH-4)."""

from typing import Any

import pytest

from orchestrator import bundled_content
from orchestrator.core.common.errors import CompileFailed, WorkflowUnknown
from orchestrator.publishing.actions.workflows import compile_source, publish_source, retire_workflow
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.publishing.queries.workflows import (
    document_of,
    in_force,
    list_all_workflows,
    spec_of,
    versions_of,
)
from orchestrator.workflow_yaml import format_workflow_yaml, read_source
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def source(slug: str = "tool-loop", **changes: str) -> str:
    """A shipped workflow's text, with pieces of it replaced."""
    text = (bundled_content.HERE / "workflows" / f"{slug}.yaml").read_text()
    for old, new in changes.items():
        text = text.replace({"title": "Tool loop", "entry": "entry: intake"}.get(old, old), new)
    return text


def faults(error: CompileFailed) -> list[tuple[int, int | None]]:
    """Number and line of each."""
    return [(found["number"], found["line"]) for found in error.data["faults"]]


def numbers(world: World, slug: str = "tool-loop") -> list[int]:
    """The versions there are."""
    with tenant_transaction(world.id):
        return list(
            WorkflowVersion.objects.filter(slug=slug).order_by("version").values_list("version", flat=True)
        )


@proves("R-GRAPH-4", part="publishing")
@proves("R-SEC-6", part="workflows")
def test_a_changed_source_is_published_as_the_next_version_and_audited(world: World) -> None:
    version, new = publish_source(
        world.id, source(title="Tool loop, renamed"), by=world.people.admin.id, reason="A better name"
    )
    assert (version.version, version.title, new) == (2, "Tool loop, renamed", True)
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="workflow.publish")
        first = WorkflowVersion.objects.get(slug="tool-loop", version=1)
    assert (entry.before["version"], entry.after["version"], entry.reason) == (1, 2, "A better name")
    assert entry.principal == world.people.admin.id
    assert spec_of(first).title == "Tool loop"


def test_the_same_source_again_is_the_version_that_stands(world: World) -> None:
    assert publish_source(world.id, source(), by=None).new is False
    assert numbers(world) == [1]


@proves("R-GRAPH-4", part="faults at their lines, nothing changed")
@proves("R-GRAPH-2", part="all faults with their lines")
def test_a_faulty_source_gets_every_fault_at_its_line_and_changes_nothing(world: World) -> None:
    text = source()
    broken = text.replace("{id: judge, kind: verify_output}", "{id: judge, kind: guess}").replace(
        "{source: init, outcome: failed, target: end-invalid}",
        "{source: init, outcome: failed, target: nowhere}",
    )
    lines = broken.splitlines()
    with pytest.raises(CompileFailed) as caught:
        publish_source(world.id, broken, by=None)
    found = faults(caught.value)
    assert (2, 1 + next(at for at, line in enumerate(lines) if "kind: guess" in line)) in found
    assert (5, 1 + next(at for at, line in enumerate(lines) if "target: nowhere" in line)) in found
    assert numbers(world) == [1]
    with tenant_transaction(world.id):
        assert not AuditEntry.objects.filter(verb__startswith="workflow.").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("- a\n- b", 1),
        ("slug: x\n  bad: [", 2),
        ("a: &x 1\nb: *x", 2),
        ("a: " + "[" * 60, 1),
        ("!!python/object:os.system x", None),
        ("x" * 200_001, None),
        ("slug: tool-loop\ntier: many\nnodes: []", 2),
        ("a: \x00", None),
        ("slug: 2026-13-45", None),
    ],
)
def test_what_is_no_workflow_is_a_fault_and_never_a_crash(world: World, text: str, line: int | None) -> None:
    with pytest.raises(CompileFailed) as caught:
        compile_source(world.id, text)
    assert all(number >= 0 for number, _ in faults(caught.value))
    if line is not None:
        assert line in {at for _, at in faults(caught.value)}


def test_a_boundary_that_is_not_there_is_a_fault(world: World) -> None:
    text = source().replace("boundary: tool-loop-default", "boundary: none-such")
    with pytest.raises(CompileFailed) as caught:
        publish_source(world.id, text, by=None)
    (found,) = caught.value.data["faults"]
    assert "none-such" in found["sentence"]
    assert text.splitlines()[found["line"] - 1].startswith("boundary:")


@proves("R-GRAPH-4", part="retiring")
def test_a_retired_version_gives_way_to_the_one_before(world: World) -> None:
    publish_source(world.id, source(title="Second"), by=None)
    retire_workflow(world.id, "tool-loop", 2, by=world.people.admin.id, reason="It stalls")
    with tenant_transaction(world.id):
        force = in_force(versions_of("tool-loop"))
        entry = AuditEntry.objects.get(verb="workflow.retire")
    assert force is not None
    assert force.version == 1
    assert entry.reason == "It stalls"
    assert world.run(world.submit("tool-loop", SUM)).workflow_version_id == force.id


def test_a_run_goes_on_on_a_version_that_was_retired(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    retire_workflow(world.id, "tool-loop", 1, by=None, reason="x")
    assert world.drive(run).terminal_code == "SUCCESS"
    with pytest.raises(WorkflowUnknown):
        world.submit("tool-loop", SUM)


def test_a_retired_graph_published_again_is_a_new_version(world: World) -> None:
    retire_workflow(world.id, "tool-loop", 1, by=None, reason="x")
    version, new = publish_source(world.id, source(), by=None)
    assert (version.version, new) == (2, True)


def test_retiring_what_is_not_there_or_was_retired_changes_nothing(world: World) -> None:
    for slug, number in (("tool-loop", 9), ("none", 1)):
        with pytest.raises(NotFound):
            retire_workflow(world.id, slug, number, by=None, reason="x")
    first = retire_workflow(world.id, "tool-loop", 1, by=None, reason="x").retired_at
    assert retire_workflow(world.id, "tool-loop", 1, by=None, reason="again").retired_at == first


@proves("R-GRAPH-4", part="listing")
def test_the_list_says_what_is_published_and_how_it_is_used(world: World) -> None:
    world.drive(world.submit("tool-loop", SUM))
    world.submit("tool-loop", SUM)
    retire_workflow(world.id, "support-refund", 1, by=None, reason="x")
    with tenant_transaction(world.id):
        found = {listed.row.slug: listed for listed in list_all_workflows()}
    loop = found["tool-loop"]
    assert (loop.runs.number, loop.live.number, loop.state) == (2, 1, "published")
    assert found["support-refund"].state == "retired"


@pytest.mark.parametrize("slug", sorted(bundled_content.load_bundled_workflows()))
def test_a_version_written_as_yaml_compiles_to_itself(world: World, slug: str) -> None:
    with tenant_transaction(world.id):
        (version,) = versions_of(slug)
        text = format_workflow_yaml(document_of(version))
    assert compile_source(world.id, text).digest == version.digest


def test_lines_are_found_of_nodes_edges_and_keys() -> None:
    edges = "edges:\n- source: a\n  outcome: o\n  guard: {name: g}\n  target: b\n"
    text = f"slug: x\nnodes:\n  - {{id: a, kind: act}}\n{edges}"
    found = read_source(text)

    def line(**place: Any) -> int | None:
        return found.line_of({"node": None, "edge": None, "sentence": "", **place})

    assert line(node="a") == 3
    assert line(edge="a.o [g] -> b", node="a") == 5
    assert line(sentence="nodes.0.kind: wrong") == 3
    assert line(sentence="the whole of it") == 1
