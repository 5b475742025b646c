"""Components that are drawn without a template, or once for many, say what their templates say (R-UI-12)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.template import Context, Engine, Template
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from config.templatetags import ui
from config.ui import untrusted_text as hiding
from config.ui.untrusted_text import Piece, mark_untrusted_text

PIECES = (
    '{% for piece in pieces %}{% if piece.mark %}<span class="mark"{% if piece.title %} '
    'title="{{ piece.title }}"{% endif %}>{{ piece.text }}</span>{% else %}{{ piece.text }}{% endif %}'
    "{% endfor %}"
)
WHOLE = Template(
    f'<span class="hostile" dir="auto">{PIECES}</span>{{% with pieces=rest %}}{{% if rest %}}<details '
    'class="fold"><summary>Show all {{ size }} characters</summary><span class="hostile" '
    f'dir="auto">{PIECES}</span></details>{{% endif %}}{{% endwith %}}',
    engine=Engine(),
)
LINE = Template(
    f'<bdi class="hostile">{PIECES}</bdi>{{% if left %}}<span class="muted" title="{{{{ left }}}} more '
    'characters">…</span>{% endif %}',
    engine=Engine(),
)
# What markup, blanks, breaks and letters of other scripts are made of, often enough to meet.
ROUGH = st.text(
    st.one_of(
        st.sampled_from(" \t\n<>&\"'\x1b\u202e\u200d\u0301\u0430\u00a0\u3164\u00ad\u2013\u2192\u00b5\u00e9"),
        st.characters(codec="utf-8"),
        st.characters(codec="ascii"),
        st.characters(codec="latin-1"),
    ),
    max_size=60,
)
TEXTS = st.one_of(
    ROUGH, st.from_regex(r"[a-z <&\n]{0,40}( {7,11}|\n{2,5}|\t{8,10})[a-z]{0,9}", fullmatch=True)
)


@given(text=TEXTS, limit=st.integers(1, 40))
def test_text_from_outside_is_drawn_as_a_template_draws_its_pieces(text: str, limit: int) -> None:
    whole = {
        "pieces": mark_untrusted_text(text[:limit]),
        "rest": mark_untrusted_text(text[limit:]),
        "size": len(text),
    }
    assert str(ui.hostile(text, limit)) == WHOLE.render(Context(whole))
    line = " ".join(text.split(maxsplit=400))
    cut = {"pieces": mark_untrusted_text(line[:limit]), "left": max(0, len(line) - limit)}
    assert str(ui.hostile_line(text, limit)) == LINE.render(Context(cut))


@given(text=TEXTS)
def test_a_text_in_which_nothing_hides_is_one_piece_and_the_same_as_read_letter_by_letter(text: str) -> None:
    whole = "".join(piece.text for piece in hiding._iterate_pieces(text) if not piece.mark)
    marked = [piece for piece in hiding._iterate_pieces(text) if piece.mark]
    found = mark_untrusted_text(text)
    assert "".join(piece.text for piece in found if not piece.mark) == whole
    assert bool(marked) == any(piece.mark for piece in found)
    if not marked:
        assert found == ([Piece(text)] if text else [])


def test_no_letter_that_is_passed_over_would_be_marked_alone_or_in_a_word() -> None:
    passed = [chr(at) for at in range(0x3000) if hiding._MAY_HIDE.search(chr(at)) is None]
    assert len(passed) == 200
    assert [
        one
        for one in passed
        for text in (one, f"ab{one}cd")
        if any(p.mark for p in hiding._iterate_pieces(text))
    ] == []


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("icon", ("check",)),
        ("icon", ("alert", "<b>Problem</b>")),
        ("icon", ("alert", mark_safe("<b>Problem</b>"))),
        ("state_chip", ("failed", "BUDGET_EXHAUSTED")),
        ("state_chip", ('<b>"', "")),
        ("class_chip", ("destructive",)),
        ("meter", ("Cost", Decimal("0.41"), Decimal("0.12"), Decimal(1), "usd")),
        ("meter", ("Cost", Decimal("0.410"), 0, None, "usd")),
        ("meter", ("<Calls>", 17, 1, 20, "calls", 15)),
    ],
)
def test_what_is_kept_is_what_its_template_draws_the_first_time_and_again(
    name: str, given: tuple[Any, ...]
) -> None:
    asked = ui.register.tags[name]
    told = {f"given{place}": value for place, value in enumerate(given)}
    source = f"{{% load ui %}}{{% {name} {' '.join(told)} %}}"
    expected = render_to_string(f"components/{name}.html", getattr(ui, name)(*given))
    page = Template(source)
    assert asked is not None
    assert [page.render(Context(told)) for _ in range(2)] == [expected, expected]
