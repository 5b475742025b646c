"""What the components' helpers say, without a template (R-UI-11)."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.core.lifecycle import RequestStatus
from config.ui.charts import build_bars, build_sparkline_points
from config.ui.diff import diff_json_entries, diff_text_lines
from config.ui.json_tree import MOST, build_json_tree
from config.ui.number_format import (
    compute_percentage,
    format_duration,
    format_money,
    format_quantity,
    used_of,
)
from config.ui.status_styles import CLASSES, STATES, Tone, class_look, state_look
from config.ui.untrusted_text import HIDDEN, mark_untrusted_text
from orchestrator.core.common.run_status import ENDINGS, Status
from orchestrator.core.domain.tool_spec import Risk
from tests.proves import proves
from tests.servers import ROOT

TOKENS = (ROOT / "static/css/tokens.css").read_text()
SPRITE = (ROOT / "static/icons.svg").read_text()


def plain(text: str) -> str:
    """The pieces with marks in brackets."""
    return "".join(f"[{piece.text}]" if piece.mark else piece.text for piece in mark_untrusted_text(text))


@pytest.mark.parametrize("tone", list(Tone))
def test_every_tone_has_its_three_colours_and_its_class(tone: Tone) -> None:
    assert [part for part in ("text", "tint", "solid") if f"--{tone}-{part}:" not in TOKENS] == []
    assert f".tone-{tone} {{" in TOKENS


def test_every_state_of_a_run_and_of_a_request_has_a_look_of_its_own_icon() -> None:
    assert {status.value for status in (*Status, *RequestStatus)} <= set(STATES)
    assert [look.icon for look in STATES.values() if f'<symbol id="{look.icon}"' not in SPRITE] == []


def test_how_a_run_ended_is_seen_in_its_chip() -> None:
    looks = {code.value: state_look(ending.status, code).word for code, ending in ENDINGS.items()}
    assert looks["BUDGET_EXHAUSTED"] == looks["TIMEOUT"] == "Stopped at limit"
    assert looks["PARTIAL_SUCCESS"] == "Partly done"
    assert looks["SUCCESS"] == "Succeeded"


def test_every_risk_class_has_letter_word_and_colours_and_an_unknown_one_is_the_worst() -> None:
    assert {risk.value for risk in Risk} <= set(CLASSES)
    assert [risk for risk in CLASSES if f".tone-{class_look(risk)[0]} {{" not in TOKENS] == []
    assert class_look("brand_new")[1] == "R4"


def _luminance(colour: str) -> float:
    full = colour if len(colour) == 6 else "".join(digit * 2 for digit in colour)
    channels = (int(full[at : at + 2], 16) / 255 for at in (0, 2, 4))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _ratio(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _colours() -> dict[str, tuple[str, str]]:
    return {
        name: (light, dark)
        for name, light, dark in re.findall(r"--([\w-]+): light-dark\(#(\w+), #(\w+)\)", TOKENS)
    }


@proves("R-UI-11", part="contrast of every token")
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_from_their_grounds(theme: int) -> None:
    found = {name: pair[theme] for name, pair in _colours().items()}
    tones = {name.removesuffix("-tint") for name in found if name.endswith("-tint") and name != "accent-tint"}
    weak = [tone for tone in tones if _ratio(found[f"{tone}-text"], found[f"{tone}-tint"]) < 4.5]
    weak += [
        text
        for text in ("t1", "t2", "t3", "accent")
        for on in ("bg", "s1", "s2")
        if _ratio(found[text], found[on]) < 4.5
    ]
    weak += [
        tone for tone in tones for on in ("bg", "s2") if _ratio(found[f"{tone}-solid"], found[on]) < 2.99
    ]
    assert weak == []
    assert len(tones) == len(Tone) + 2


@proves("R-UI-11", part="hostile text is seen")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay 4411\u202e1144", "pay 4411[U+202E]1144"),
        ("a\u200b\u200b\u200bb", "a[U+200B ×3]b"),
        ("\x1b[31mred\x1b[0m", "[ESC][31mred[ESC][0m"),
        ("a" + " " * 10_000 + "b", "a[10000 blanks]b"),
        ("a" + "\n" * 50 + "b", "a\n\n[50 line breaks]\nb"),
        ("p\u0430ypal", "p\u0430[Cyrillic]ypal"),
        ("\u041c\u043e\u0441\u043a\u0432\u0430", "\u041c\u043e\u0441\u043a\u0432\u0430"),
        ("Straße für Zoë", "Straße für Zoë"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("a\u00a0b", "a[U+00A0]b"),
        ("x\r\ny", "x[CR]\ny"),
        ("\U000e0041\ue000", "[U+E0041][U+E000]"),
        ("\u3164", "[U+3164]"),
        ("e" + "\u0301" * 9, "e\u0301\u0301\u0301[accent ×6]"),
        ("a    b\tc\n\nd", "a    b\tc\n\nd"),
    ],
)
def test_what_hides_or_rearranges_is_named(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text(max_size=200))
def test_no_text_keeps_anything_hidden(text: str) -> None:
    import unicodedata  # noqa: PLC0415 - for this test alone

    kept = "".join(piece.text for piece in mark_untrusted_text(text) if not piece.mark)
    hidden = [letter for letter in kept if unicodedata.category(letter) in HIDDEN - {"Cn"}]
    assert set(hidden) <= {"\n", "\t", "\u200d"}


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=200))
def test_plain_text_stays_as_it_is(text: str) -> None:
    if " " * 9 not in text:
        assert plain(text) == text


def test_a_hundred_thousand_characters_take_no_time() -> None:
    assert len(mark_untrusted_text("\u200b" * 100_000)) == 1
    assert len(mark_untrusted_text("word " * 20_000)) == 1


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (Decimal("1240"), "$1,240.00"), (Decimal("0.0071"), "$0.0071"), (Decimal("0.1"), "$0.10"),
        (0, "$0.00"),
        (Decimal("0.00001"), "< $0.0001"), (Decimal("-3.5"), "−$3.50"), (None, "unknown"), ("", "unknown"),
    ],
)  # fmt: skip
def test_money_names_its_currency_and_is_never_zero_for_unknown(amount: Decimal | None, shown: str) -> None:
    assert format_money(amount) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.4, "400 ms"), (1.9, "1.9 s"), (12, "12 s"), (220, "3 min 40 s"), (7500, "2 h 5 min"),
        (3600, "1 h"),
        (273_600, "3 d 4 h"), (None, "–"), (-90, "−1 min 30 s"), (86_405, "1 d"),
    ],
)  # fmt: skip
def test_a_stretch_of_time_is_its_two_greatest_units(seconds: float | None, shown: str) -> None:
    assert format_duration(seconds) == shown


def test_amounts_take_their_unit() -> None:
    said = [
        format_quantity(1204, "tokens"),
        format_quantity(Decimal("0.5"), "USD"),
        format_quantity(302, "s"),
        format_quantity(None, "calls"),
    ]
    assert said == ["1,204 tokens", "$0.50", "5 min 2 s", "unknown"]


def test_a_meter_says_what_it_shows() -> None:
    said = [used_of(17, 1, 20, "calls"), used_of("0.41", 0, 1, "USD"), used_of(9, None, None, "tokens")]
    assert said == ["17 of 20 calls, 1 reserved", "$0.41 of $1.00", "9 tokens"]


def test_a_share_stays_between_nothing_and_all() -> None:
    assert [
        compute_percentage(41, 100),
        compute_percentage(200, 100),
        compute_percentage(-1, 100),
        compute_percentage(1, 0),
        compute_percentage(0, 0),
        compute_percentage(None, 5),
    ] == [
        Decimal(41),
        Decimal(100),
        Decimal(0),
        Decimal(100),
        Decimal(0),
        Decimal(0),
    ]


def test_a_tree_is_bounded_and_says_what_is_left() -> None:
    whole = build_json_tree({"a": list(range(10_000)), "b": None})
    assert whole.children[0].left > 10_000 - MOST
    assert (whole.children[0].size, whole.left) == (10_000, 1)


def test_a_deep_value_does_not_end_the_stack() -> None:
    value: object = "deep"
    for _ in range(5_000):
        value = [value]
    assert build_json_tree(value).kind == "array"


def test_differences_name_the_place() -> None:
    found = diff_json_entries({"a": 1, "b": "x", "c": True}, {"a": 2, "b": "x", "d": None})
    assert [(entry.pointer, entry.before, entry.after) for entry in found] == [
        ("/a", "1", "2"), ("/c", "true", None), ("/d", None, "null"),
    ]  # fmt: skip


def test_texts_differ_by_line() -> None:
    assert [(line.what, line.text) for line in diff_text_lines("a\nb", "a\nc")] == [
        ("kept", "a"),
        ("removed", "b"),
        ("added", "c"),
    ]


def test_charts_of_nothing_are_nothing() -> None:
    assert build_sparkline_points([]) == ""
    assert build_sparkline_points([0, 0]) == "0.0,22.0 120.0,22.0"
    assert [bar.percent for bar in build_bars([("a", 4, "4"), ("b", 1, "1"), ("c", 0, "0")])] == [100, 25, 0]
