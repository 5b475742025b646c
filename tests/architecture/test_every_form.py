"""Every form of the templates that asks for something is filled and sent by keys alone, or it is said where
(R-UI-11).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.elsewhere import ELSEWHERE
from tests.browser.forms import FORMS
from tests.proves import proves
from tests.servers import ROOT

TEMPLATES = ROOT / "templates"
FORM = re.compile(r"<form\b.*?</form>", re.DOTALL)
# How a template says that a form changes something; the card of a request says it in a part of its own.
SENT = ('method="post"', "approvals/_sends.html", "attrs.method")
# What nobody fills: a button alone is come to by the Tab key on every page (test_keyboard).
SILENT = re.compile(r'\{% include "approvals/_(?:sends|hidden|way)\.html" %\}|<input[^>]*type="hidden"[^>]*>')
ASKS = re.compile(r"\{% (?:field|include|slot)|\{\{ field|<(?:input|select|textarea)\b")


def asks(source: str) -> bool:
    """Whether a form has something to fill in."""
    return bool(ASKS.search(SILENT.sub("", source)))


def forms() -> list[tuple[str, str]]:
    """Each form that changes something, by its template, as it is written."""
    files = sorted(TEMPLATES.rglob("*.html"))
    written = ((str(path.relative_to(TEMPLATES)), path.read_text()) for path in files)
    every = ((name, found) for name, source in written for found in FORM.findall(source))
    return [(name, found) for name, found in every if any(sign in found for sign in SENT)]


def listed() -> list[tuple[str, str]]:
    """What is known, by its template and what only it has there."""
    filled = [(form.template, form.mark or form.button) for form in FORMS.values()]
    return [*filled, *ELSEWHERE]


@proves("R-UI-11", part="no form is left out of those sent by keys alone")
def test_every_form_that_asks_for_something_is_sent_by_keys_or_says_where_it_is() -> None:
    known = listed()
    left_out = [
        f"{name}: {source[:120]}"
        for name, source in forms()
        if asks(source) and not any(name == template and mark in source for template, mark in known)
    ]
    assert not left_out, "\n".join(left_out)


@pytest.mark.parametrize(("template", "mark"), sorted(set(listed())))
def test_what_is_known_of_a_form_is_true_of_one(template: str, mark: str) -> None:
    found = [source for name, source in forms() if name == template and mark in source]
    assert len(found) == 1 or (found and not mark)


def test_what_is_asked_is_seen() -> None:
    assert {Path(name).name for name, source in forms() if not asks(source)} >= {"_starters.html", "top.html"}
    assert not asks('<form method="post">{% csrf_token %}<input type="hidden" name="a"><button>Go</button>')
    for one in ("{% field form.reason %}", '<input name="a">', "<select>", '{% include "x.html" %}'):
        assert asks(f'<form method="post">{one}')
