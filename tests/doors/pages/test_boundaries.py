"""The pages of boundaries: versions and their differences, publishing, allowing a tool (R-GRAPH-11)."""

from django.test import Client

from orchestrator.policies.queries.boundaries import boundary_in, newest_boundary
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

PUBLISH = "/boundaries/_publish"
PAGE = "/boundaries/tool-loop-default"


def refusals_of(world: World) -> int:
    """How many refusals the newest version takes."""
    with tenant_transaction(world.id):
        row = newest_boundary("tool-loop-default")
        assert row is not None
        return boundary_in(row).refusal_limit


@proves("R-GRAPH-11", part="page: look, publish, differences")
def test_administrator_publishes_a_boundary_from_its_text_and_sees_what_differs(
    admin: Client, world: World
) -> None:
    assert 'href="/boundaries/tool-loop-default"' in text(admin.get("/boundaries"))
    form = form_with(admin.get(f"{PUBLISH}?from=tool-loop-default"), "preview")
    changed = form.fields["source"].replace("refusal_limit: 3", "refusal_limit: 2")
    looked = form.send(admin, "preview", source=changed, reason="Fewer")
    assert "It lets runs do nothing more" in text(looked)
    assert refusals_of(world) == 3
    answer = form.send(admin, "publish", source=changed, reason="Fewer")
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert refusals_of(world) == 2
    page = text(admin.get(f"{PAGE}?version=2&against=1"))
    assert "From version 1 to version 2" in page
    assert "/refusal_limit" in page


@proves("R-GRAPH-11", part="page: a wider one waits, and is agreed to")
def test_tool_that_is_allowed_on_the_page_waits_for_a_second_administrator(
    admin: Client, world: World
) -> None:
    second = at(make_somebody(world.house.tenant, Role.ADMIN))
    form = form_with(admin.get(PAGE), "allow")
    waiting = form.send(admin, "allow", tool="files.*", risk_ceiling="read_only", reason="Ours.")
    assert waiting["Location"] == "/tool-proposals"
    page = second.get("/tool-proposals")
    assert "It allows files.* up to read_only." in text(page)
    agreed = form_with(page, "agree").send(second, "agree", reason="Yes.")
    assert agreed.status_code == 302
    assert "The boundary tool-loop-default is at version 2 now" in text(second.get("/tool-proposals"))
    assert "files.*" in text(second.get(PAGE))


def test_only_administrator_allows_a_tool_on_the_page_at_once(admin: Client, world: World) -> None:
    form = form_with(admin.get(PAGE), "allow")
    done = form.send(admin, "allow", tool="files.*", risk_ceiling="read_only", reason="Ours.")
    assert done["Location"] == PAGE
    assert "tool-loop-default version 2 is published" in text(admin.get(PAGE))


def test_faulty_boundary_comes_back_with_its_faults(admin: Client, world: World) -> None:
    form = form_with(admin.get(PUBLISH), "publish")
    wrong = form.send(admin, "publish", source="slug: mine\nprofile: generous\n", reason="?")
    assert wrong.status_code == 422
    assert "/profile: One of coding" in text(wrong)
    form = form_with(admin.get(PAGE), "allow")
    unknown = form.send(admin, "allow", tool="no.such", risk_ceiling="read_only", reason="?")
    assert (unknown.status_code, "There is no tool no.such." in text(unknown)) == (422, True)


def test_example_of_the_empty_form_is_a_boundary(admin: Client, world: World) -> None:
    form = form_with(admin.get(PUBLISH), "publish")
    done = form.send(admin, "publish", reason="Mine")
    assert (done.status_code, done["Location"]) == (302, "/boundaries/my-tools")
