"""What a page asks for when no socket opens."""

import pytest
from django.test import Client

from tenancy.db.change_cursor import mark_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.tenancy import Somebody
from tests.factories.world import World
from tests.proves import proves
from traces.live.feeds import extract_sequence

ASKED = "How much is (12 + 30) * 2?"


def browser(somebody: Somebody) -> Client:
    """Signed in as somebody."""
    client = Client()
    client.force_login(somebody.person)
    return client


@proves("R-API-5", part="a page without a socket gets the same from the same cursor")
def test_a_run_is_asked_for_from_a_cursor_on(world: World) -> None:
    run, client = world.submit("tool-loop", ASKED), browser(world.people.operator)
    first = client.get(f"/runs/{run}/events.html?after=0")
    assert first.status_code == 200
    assert first["Interlock-After"] == "0"
    world.drive(run)
    second = client.get(f"/runs/{run}/events.html?after={first['Interlock-Seq']}")
    assert extract_sequence(second["Interlock-Seq"]) > extract_sequence(first["Interlock-Seq"])
    assert b"data-append" in second.content


def test_a_page_that_names_its_tab_as_it_was_called_before_goes_on(world: World) -> None:
    run, client = world.submit("tool-loop", ASKED), browser(world.people.operator)
    world.drive(run)
    former, now = (client.get(f"/runs/{run}/events.html?after=0&view={view}") for view in ("graph", "plan"))
    assert former.status_code == 200
    assert b'id="run-graph"' in former.content
    assert former.content == now.content


def test_nothing_new_is_answered_without_a_body(world: World) -> None:
    run, client = world.submit("tool-loop", ASKED), browser(world.people.operator)
    world.drive(run)
    seq = client.get(f"/runs/{run}/events.html?after=0")["Interlock-Seq"]
    tag = client.get(f"/runs/{run}/events.html?after={seq}")["ETag"]
    again = client.get(f"/runs/{run}/events.html?after={seq}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/runs/changes.html", "/approvals/changes.html"])
def test_the_lists_are_asked_for_alike(world: World, path: str) -> None:
    client = browser(world.people.approver)
    with tenant_transaction(world.id):
        after = str(mark_now())
    run = world.submit("support-refund", "Refund something")
    world.drive(run)
    answer = client.get(path, {"after": after})
    assert answer.status_code == 200
    assert answer["Interlock-Seq"] > after
    assert answer.content


def test_who_is_not_signed_in_or_not_here_gets_nothing(world: World) -> None:
    run = world.submit("tool-loop", ASKED)
    assert Client().get(f"/runs/{run}/events.html").status_code == 302
    stranger = browser(world.people.stranger)
    theirs, absent = (stranger.get(f"/runs/{one}/events.html") for one in (run, fresh_id()))
    assert (theirs.status_code, absent.status_code) == (404, 404)
    operator = browser(world.people.operator)
    assert operator.get(f"/runs/{run}/events.html?after=x").status_code == 400
    assert operator.get(f"/runs/{run}/events.html?after=1.x").status_code == 400
    assert operator.get(f"/runs/{run}/events.html?after=1&view=nothing").status_code == 400
    assert operator.get("/runs/changes.html?after=x").status_code == 400
