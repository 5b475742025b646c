"""Style sheets hold no rule that nothing is drawn by, and modules are loaded by something (R-UI-11)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.servers import ROOT

SHEETS = sorted((ROOT / "static/css").rglob("*.css"))
SCRIPTS = sorted((ROOT / "static/js").glob("*.js"))
FLOORS = ("config", "orchestrator", "approvals", "budgets", "traces", "tenancy")


@cache
def drawn() -> str:
    """Everything that writes a page: templates, modules, and Python that makes elements."""
    python = (file for floor in FLOORS for file in (ROOT / floor).rglob("*.py"))
    files = (*(ROOT / "templates").rglob("*.html"), *SCRIPTS, *python)
    return "\n".join(file.read_text() for file in files)


@cache
def words() -> frozenset[str]:
    """Its words, as classes are written."""
    return frozenset(re.findall(r"[\w-]+", drawn()))


@cache
def stems() -> frozenset[str]:
    """Beginnings of classes whose ends are values: `mood-` of `class="mood-{{ row.mood }}"`."""
    return frozenset(re.findall(r"([a-z][\w-]*-)(?=\{)", drawn()))


def is_drawn(name: str) -> bool:
    """Whether something has the class, or a class of that beginning with a value that is a word somewhere."""
    ends = {name.removeprefix(stem) for stem in stems() if name.startswith(stem)}
    return name in words() or not ends.isdisjoint(words()) or any(end.upper() in words() for end in ends)


def bare(text: str) -> str:
    """A sheet without its comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def test_a_class_that_nothing_has_is_found_out() -> None:
    assert is_drawn("state_chip")
    assert is_drawn("tone-retrying")
    assert not is_drawn("no-such-" + "class")


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda file: file.stem)
def test_every_class_of_a_sheet_is_drawn_somewhere(sheet: Path) -> None:
    text = bare(sheet.read_text())
    selectors = " ".join(re.findall(r"([^{}]+)\{", text))
    names = set(re.findall(r"\.([a-zA-Z][\w-]*)", selectors))
    assert sorted(name for name in names if not is_drawn(name)) == []


def test_every_colour_and_size_is_used() -> None:
    tokens = re.findall(r"(--[\w-]+):", (ROOT / "static/css/tokens.css").read_text())
    used = set(re.findall(r"var\((--[\w-]+)", "\n".join(file.read_text() for file in (*SHEETS, *SCRIPTS))))
    assert sorted(set(tokens) - used) == []


def test_no_sheet_says_a_thing_twice_for_the_same_elements() -> None:
    found = [
        (file.name, selector.strip())
        for file in SHEETS
        for rules in [re.findall(r"([^{}@;]+)\{([^{}]*)\}", bare(file.read_text()))]
        for place, (selector, body) in enumerate(rules)
        if (selector, body) in rules[:place]
    ]
    assert found == []


def test_every_module_and_sheet_is_loaded_by_a_page_or_a_module() -> None:
    named = drawn() + "".join(file.read_text() for file in SHEETS)
    assert [file.name for file in (*SHEETS, *SCRIPTS) if file.name not in named] == []
