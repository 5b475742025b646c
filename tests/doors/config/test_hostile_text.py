"""Text of a model or a tool as a page shows it: nothing in it acts, nothing in it hides (M14)."""

import re

import pytest

from config.templatetags.ui import hostile, hostile_line
from tests.proves import proves

ANSWERS = {
    "markup": "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "an attribute that ends": '" onmouseover="alert(1)',
    "a link": '<a href="javascript:alert(1)">here</a> https://evil.example/?q=1 [here](https://evil.example)',
    "a terminal's colours": "\x1b[31mred\x1b[0m \x9b31m",
    "the other way round": "\u202egro.elpmaxe\u202c \u2066x\u2069 \u200b\ufeff",
    "the end of a line": "one\r\ntwo\x00three\x08",
}
TAG = re.compile(r"</?([a-z]+)((?:\s+[a-z-]+=\"[^\"]*\")*)\s*>")


@proves("M14", part="on a page: escaped, controls made visible, links not live")
@pytest.mark.parametrize("shown", [hostile, hostile_line])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_words_and_nothing_else(answer: str, shown: object) -> None:
    assert callable(shown)
    page = str(shown(answer))
    drawn = TAG.findall(page)
    assert {name for name, _ in drawn} <= {"bdi", "b", "span"}
    assert not any(word in attributes for _, attributes in drawn for word in ("href", "src", " on"))
    assert "<" not in TAG.sub("", page)
    assert not re.search("[\x00\x08\x1b\x9b\u200b\u202a-\u202e\u2066-\u2069\ufeff]", page)


@proves("M14", part="nothing is lost by being shown")
def test_what_was_hidden_is_named() -> None:
    page = str(hostile("a\u202eb\x1b[0mc"))
    assert page.count('class="mark"') == 2
    assert all(f">{letter}" in page or f"{letter}<" in page for letter in "ab")
