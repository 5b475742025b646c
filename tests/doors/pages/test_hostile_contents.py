"""What models and tools said in a run, on each of its pages and by the API: escaped, and visible (M14)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client
from pytest_django import Settings

from tenancy.core.roles import Role
from tests.doors.api.program import Program, program
from tests.doors.pages.hostile import TABS
from tests.doors.pages.people import at
from tests.doors.pages.people import world as world
from tests.doors.pages.test_hostile import FIELDS, STACKED, hidden
from tests.doubles.desk_server import DeskServer
from tests.doubles.desk_server import desk_server as desk_server
from tests.factories.foreign import foreign, to_the_end
from tests.factories.hostile import BITS
from tests.factories.hostile_run import ARGUMENT, CAME, ENDING, Hostile, begin
from tests.factories.world import World
from tests.proves import proves

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

# Ten thousand blanks, of which some stand before the fold.
BLANKS = re.compile(r">9\d\d\d blanks<")
VIEWS = ("", "?rows=each", "?show=problems", "?q=onclick", *(f"?tab={tab}" for tab in TABS))


@pytest.fixture
def run(world: World, desk_server: DeskServer, settings: Settings) -> Iterator[UUID]:
    """The hostile run, at its question."""
    with foreign(settings, Hostile()):
        yield begin(world, desk_server)


def rows_of(reader: Client, run: UUID) -> list[str]:
    """The address of every row of the run's timeline."""
    page = reader.get(f"/runs/{run}").content.decode()
    found = sorted(set(re.findall(rf"/runs/{run}/rows/\d+", page)))
    assert found
    return found


def judged(reader: Client, paths: list[str], **headers: str) -> str:
    """All the pages, of which none shows anything hostile as it is."""
    faults, seen = [], ""
    for path in paths:
        answer = reader.get(path, headers=headers)
        assert answer.status_code == 200, path
        page = FIELDS.sub("", answer.content.decode())
        seen += page
        faults += [f"{path}: {what}" for what in hidden(page)]
        faults += [f"{path}: {what}" for what in ("<script>alert", "<b onclick") if what in page]
        faults += [f"{path}: accents"] if STACKED.search(page) else []
    assert not faults, "\n".join(faults)
    return seen


@proves("M14", part="every content of a run, on every page of it")
@proves("R-SEC-5", part="what models and tools said, committed through the ring")
def test_no_page_of_a_run_shows_what_was_said_in_it_but_escaped_and_marked(world: World, run: UUID) -> None:
    admin = at(world.people.admin)
    (asked,) = world.open_requests(run)
    waiting = [f"/runs/{run}", f"/approvals/{asked.id}", f"/approvals?open={asked.id}", "/approvals", "/"]
    cards = judged(admin, waiting)
    assert ARGUMENT in cards
    assert BLANKS.search(cards)
    ended = to_the_end(world, run)
    assert ended.terminal_code == "SUCCESS", ended.reason
    rows = rows_of(admin, run)
    pages = [f"/runs/{run}{view}" for view in VIEWS] + rows + [f"/approvals/{asked.id}", "/runs"]
    seen = judged(admin, pages)
    assert [mark for mark in CAME if mark not in seen] == []
    assert BLANKS.search(seen)
    opened = judged(admin, rows, **{"HX-Request": "true"})
    assert [mark for mark in CAME if mark not in opened] == [ENDING] * (ENDING not in opened)
    judged(admin, [f"/runs/{run}/events.html?after=0&view={view}" for view in ("", "timeline", "messages")])
    world.sound(run)


def texts(found: Any) -> Iterator[str]:
    """Every text in a document, the names of its members too."""
    if isinstance(found, dict):
        for name, value in found.items():
            yield name
            yield from texts(value)
    elif isinstance(found, list):
        for value in found:
            yield from texts(value)
    elif isinstance(found, str):
        yield found


@proves("M14", part="every content of a run, by the API")
def test_the_api_hands_it_on_to_the_letter_in_answers_that_no_browser_draws(world: World, run: UUID) -> None:
    reader: Program = program(world.id, Role.AUDITOR)
    (asked,) = world.open_requests(run)
    told = _answers(reader, f"/approvals/{asked.id}")
    assert any(ARGUMENT in one and all(bit in one for bit in BITS) for one in told)
    to_the_end(world, run)
    told = _answers(reader, f"/runs/{run}") + _answers(reader, f"/runs/{run}/result")
    assert any(ENDING in one and all(bit in one for bit in BITS) for one in told)
    for path in (f"/runs/{run}/events", f"/approvals/{asked.id}", "/runs", "/approvals"):
        _answers(reader, path)


def _answers(reader: Program, path: str) -> list[str]:
    """The texts of one answer: JSON by its label, not to be guessed at, nothing in it allowed to load."""
    answer = reader.get(path, headers={"Accept": "text/html,application/json"})
    assert answer.status_code == 200, path
    assert answer["Content-Type"].partition(";")[0] == "application/json"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    return list(texts(orjson.loads(answer.content)))
