"""The pages of workflows: the graph and its text, publishing with faults in place, retiring (R-UI-6)."""

import re

import pytest
from django.test import Client

from orchestrator import bundled_content
from orchestrator.publishing.models import WorkflowVersion
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import HOSTILE, text
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves

FILE = bundled_content.HERE / "workflows" / "tool-loop.yaml"
PUBLISH = "/workflows/_publish"


def numbers(world: World) -> list[int]:
    """The versions of the tool loop."""
    with tenant_transaction(world.id):
        rows = WorkflowVersion.objects.filter(slug="tool-loop").order_by("version")
        return list(rows.values_list("version", flat=True))


@proves("R-GRAPH-4", part="SVG on the page, with its text")
@proves("R-UI-6", part="graph")
def test_the_graph_is_drawn_and_every_node_leads_to_its_text(admin: Client) -> None:
    page = text(admin.get("/workflows/tool-loop"))
    nodes = [node.id for node in bundled_content.load_bundled_workflows()["tool-loop"].nodes]
    links = re.findall(r'<a class="graph-node[^>]*href="#node-([^"]+)"', page)
    assert sorted(links) == sorted(nodes)
    assert all(f'id="node-{node}"' in page for node in nodes)
    assert page.count('class="graph-line') >= 40
    assert "style=" not in page.split("<main")[1]


def test_the_shipped_text_can_be_taken_compiled_and_published_again(admin: Client, world: World) -> None:
    form = form_with(admin.get(f"{PUBLISH}?from=tool-loop"), "compile")
    compiled = form.send(admin, "compile")
    assert "It compiles; nothing is published yet." in text(compiled)
    assert "graph-picture" in text(compiled)
    answer = form.send(admin, "publish")
    assert (answer.status_code, answer["Location"]) == (302, "/workflows/tool-loop")
    assert "stands already" in text(admin.get(answer["Location"]))
    assert numbers(world) == [1]


@proves("R-GRAPH-4", part="publishing on the page")
@proves("R-UI-6", part="versions and their differences")
def test_a_changed_text_is_published_and_its_difference_shown(admin: Client, world: World) -> None:
    form = form_with(admin.get(f"{PUBLISH}?from=tool-loop"), "publish")
    changed = form.fields["source"].replace("title: Tool loop", "title: Mine")
    assert form.send(admin, "publish", source=changed, reason="Better").status_code == 302
    assert numbers(world) == [1, 2]
    page = text(admin.get("/workflows/tool-loop?version=2&against=1"))
    assert "From version 1 to version 2" in page
    assert "title: Mine" in page
    assert "title: Tool loop" in page
    assert "New runs get" in text(admin.get("/workflows/tool-loop?version=1"))


@proves("R-UI-6", part="compile errors in place")
@proves("R-GRAPH-4", part="faults on the page")
def test_a_faulty_text_comes_back_whole_with_every_fault_at_its_line(admin: Client, world: World) -> None:
    source = FILE.read_text().replace("kind: verify_output}", "kind: guess}")
    line = 1 + next(at for at, found in enumerate(source.splitlines()) if "kind: guess" in found)
    answer = admin.post(PUBLISH, {"source": source, "publish": "publish"})
    page = text(answer)
    assert answer.status_code == 422
    assert "nothing was published" in page
    assert f'href="#line-{line}"' in page
    assert f'id="line-{line}"' in page
    assert "2 known-kind" in page
    assert form_with(answer, "publish").fields["source"].replace("\r\n", "\n") == source
    assert numbers(world) == [1]


@pytest.mark.parametrize("source", ["", "- a", "a: &b 1\nc: *b", "x: [", HOSTILE, "slug: x\n" + "y" * 3_000])
def test_what_is_no_workflow_is_422_and_harmless(admin: Client, world: World, source: str) -> None:
    answer = admin.post(PUBLISH, {"source": source, "publish": "publish"})
    assert answer.status_code == 422
    assert "<script>alert" not in text(answer)
    assert numbers(world) == [1]


@proves("R-GRAPH-4", part="retiring on the page")
def test_a_version_is_retired_with_a_reason(admin: Client, world: World) -> None:
    path = "/workflows/tool-loop/1/retire"
    admin.post(path)
    assert "Say why" in text(admin.get("/workflows/tool-loop"))
    assert "is retired. Its runs go on." in text(admin.post(path, {"reason": "It stalls"}, follow=True))
    assert "Retired" in text(admin.get("/workflows"))
    assert "no new run gets it" in text(admin.get("/workflows/tool-loop"))
    assert admin.post("/workflows/tool-loop/9/retire", {"reason": "x"}).status_code == 404


def test_a_version_that_is_not_there_is_404(admin: Client) -> None:
    for query in ("version=9", "version=x", "against=-1"):
        assert admin.get(f"/workflows/tool-loop?{query}").status_code == 404
