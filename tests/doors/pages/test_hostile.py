"""Hostile text in every field that shows text from outside, on every page: escaped, and visible (R-SEC-5)."""

import re
import unicodedata
from typing import Any

import psycopg
import pytest

from config.ui.untrusted_text import HIDDEN
from tests.doors.pages.hostile import hostile_house
from tests.doors.pages.people import at
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.hostile import CLOSED, SHOWN, UNSEEN, columns, tag
from tests.factories.world import World
from tests.proves import proves

# What stands in a field is what will be sent, to the letter; the marks stand beside it.
FIELDS = re.compile(r'\svalue="[^"]*"|<textarea.*?</textarea>|data-copy="[^"]*"', re.DOTALL)
STACKED = re.compile("[\u0300-\u036f]{4}")


def hidden(page: str) -> set[str]:
    """The names of letters that hide or rearrange others, unmarked."""
    odd = {
        letter for letter in set(page) if unicodedata.category(letter) in HIDDEN and letter not in "\n\t\r"
    }
    return {
        f"U+{ord(letter):04X} {page[page.index(letter) - 80 : page.index(letter) + 9]!r}" for letter in odd
    }


def test_every_column_of_text_is_hostile_here_or_of_a_closed_vocabulary() -> None:
    there = {name for name, _ in columns()}
    assert sorted(there - CLOSED - UNSEEN - set(SHOWN)) == []
    assert sorted((CLOSED | UNSEEN | set(SHOWN)) - there) == []
    assert len(CLOSED) + len(UNSEEN) + len(set(SHOWN)) == len(there)


@pytest.mark.slow
@pytest.mark.timeout(300)
@proves("R-SEC-5", part="hostile text in every field, on every page")
def test_no_page_shows_hostile_text_but_escaped_and_marked(
    world: World, company: Company, superuser: psycopg.Connection[Any]
) -> None:
    admin, faults, seen = at(world.people.admin), [], ""
    for path in hostile_house(world, company, superuser):
        answer = admin.get(path)
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            assert answer.status_code < 500, path
            continue
        page = FIELDS.sub("", answer.content.decode())
        seen += page
        faults += [(path, what) for what in hidden(page)]
        faults += [(path, what) for what in ("<script>alert", "<b onclick") if what in page]
        faults += [(path, "accents")] if STACKED.search(page) else []
    assert not faults, "\n".join(f"{path}: {what}" for path, what in faults)
    assert " ".join(name for name in SHOWN if tag(name) not in seen) == ""
