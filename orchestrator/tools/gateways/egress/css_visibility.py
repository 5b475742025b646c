"""Judges the effect of one style declaration on a text: seen, hidden, or unsure (R-TOOL-19, M14).

Only what is fully understood counts as seen or hidden. A variable, a calculation, an escape, or an unknown
unit or keyword may hide anything, and counts as unsure.
"""

import colorsys
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

Sight = Literal["seen", "unsure", "hidden"]
LONGEST: Final = 4_000
_WIDE = ("inherit", "initial", "unset", "revert", "revert-layer")
_LENGTH = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)([a-z]*|%)")
_PIXELS: Mapping[str, float] = {
    "": 1, "px": 1, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 37.8, "mm": 3.78, "q": 0.945, "em": 16, "rem": 16,
    "ex": 8, "ch": 8, "vw": 12.8, "vh": 8, "vmin": 8, "vmax": 12.8, "lh": 19, "rlh": 19,
}  # fmt: skip
_DISPLAYS_WORDS = """
block inline inline-block flex inline-flex grid inline-grid table inline-table table-row table-cell
table-row-group table-header-group table-footer-group table-column table-column-group table-caption
list-item contents flow-root ruby run-in -webkit-box -webkit-flex -ms-flexbox -webkit-inline-box -ms-grid
"""
_DISPLAYS = frozenset(_DISPLAYS_WORDS.split())
_SIZES_WORDS = """
xx-small x-small small medium large x-large xx-large xxx-large smaller larger
"""
_SIZES = frozenset(_SIZES_WORDS.split())
_SIZED_WORDS = """
width height max-width max-height inline-size block-size max-inline-size max-block-size
"""
_SIZED = frozenset(_SIZED_WORDS.split())
_FREE_WORDS = """
auto none min-content max-content fit-content stretch
"""
_FREE = frozenset(_FREE_WORDS.split())
_PLACES_WORDS = """
left top right bottom inset inset-inline inset-block text-indent margin margin-left margin-top margin-right
margin-bottom margin-inline margin-inline-start margin-block margin-block-start inset-inline-start translate
"""
_PLACES = frozenset(_PLACES_WORDS.split())
_PLAIN_FILTER = re.compile(r"none|(?:grayscale|sepia|hue-rotate)\([^()]*\)")
_NAMED_WORDS = """
white ffffff snow fffafa ivory fffff0 ghostwhite f8f8ff whitesmoke f5f5f5 floralwhite fffaf0 seashell fff5ee
mintcream f5fffa azure f0ffff aliceblue f0f8ff honeydew f0fff0 lavenderblush fff0f5 oldlace fdf5e6 linen
faf0e6 beige f5f5dc cornsilk fff8dc lightyellow ffffe0 gainsboro dcdcdc lightgray d3d3d3 lightgrey d3d3d3
silver c0c0c0 darkgray a9a9a9 darkgrey a9a9a9 gray 808080 grey 808080 dimgray 696969 dimgrey 696969 black
000000 navy 000080 darkblue 00008b midnightblue 191970 blue 0000ff red ff0000 darkred 8b0000 maroon 800000
green 008000 darkgreen 006400 lime 00ff00 olive 808000 teal 008080 aqua 00ffff cyan 00ffff fuchsia ff00ff
magenta ff00ff purple 800080 yellow ffff00 orange ffa500 gold ffd700 pink ffc0cb brown a52a2a crimson dc143c
tomato ff6347 indigo 4b0082 royalblue 4169e1 steelblue 4682b4 slategray 708090 slategrey 708090
darkslategray 2f4f4f darkslategrey 2f4f4f firebrick b22222 chocolate d2691e coral ff7f50 salmon fa8072 khaki
f0e68c violet ee82ee orchid da70d6 tan d2b48c lavender e6e6fa lightblue add8e6 lightgreen 90ee90 skyblue
87ceeb forestgreen 228b22 seagreen 2e8b57
"""
_NAMED = _NAMED_WORDS.split()
NAMES: Final[Mapping[str, str]] = dict(zip(_NAMED[::2], _NAMED[1::2], strict=True))

Colour = tuple[int, int, int]


class CssDeclaration(NamedTuple):
    """One declaration, in lower case with single spaces."""

    name: str
    value: str
    important: bool


@lru_cache(maxsize=4_096)
def parse_declarations(style: str) -> tuple[CssDeclaration, ...] | None:
    """Parse the declarations of a style; None where they cannot be read here."""
    if len(style) > LONGEST or "\\" in style:
        return None
    plain = re.sub(r"/\*.*?(?:\*/|$)", " ", style, flags=re.S).lower()
    found: list[CssDeclaration] = []
    for one in plain.split(";"):
        name, colon, value = one.partition(":")
        bare = " ".join(value.split())
        if colon and bare:
            important = bare.endswith("important") and "!" in bare
            cut = bare.rpartition("!")[0].strip() if important else bare
            found.append(CssDeclaration(name.strip(), re.sub(r" ?([(),]) ?", r"\1", cut).strip(), important))
    return tuple(found)


@lru_cache(maxsize=4_096)
def sight_of_all(values: frozenset[tuple[str, str]]) -> Sight:
    """Return the visibility of an element's text by all its values."""
    others = dict(values)
    return pick_worst_sight(sight_of(name, value, others) for name, value in values)


def sight_of(name: str, value: str, others: Mapping[str, str]) -> Sight:
    """Return the visibility of an element's text by one declaration.

    `others` are the element's other values. Colours are compared with their background elsewhere.
    """
    judge = _JUDGES.get(name)
    if judge is None and name not in _SIZED and name not in _PLACES:
        return "seen"
    if value in _WIDE:
        return "seen"
    if "var(" in value or "env(" in value or "attr(" in value:
        return "unsure"
    if name in _SIZED:
        return _judge_size(value, others)
    return _judge_position(name, value) if judge is None else judge(value)


@lru_cache(maxsize=4_096)
def colour_of(value: str) -> Colour | Literal["transparent", "unknown"]:
    """Parse a colour; "transparent" or "unknown" where it is invisible or not understood."""
    if value == "transparent":
        return "transparent"
    if (named := NAMES.get(value)) is not None:
        return _parse_hex_colour(named)
    if re.fullmatch(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", value):
        digits = value[1:] if len(value) > 5 else "".join(one * 2 for one in value[1:])
        return _seen_through(_parse_hex_colour(digits[:6]), int(digits[6:] or "ff", 16) / 255)
    called = re.fullmatch(r"(rgb|hsl)a?\(([-+\d.%, /edg]+)\)", value)
    numbers = re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)%?", called[2]) if called else []
    if called is None or len(numbers) not in (3, 4):
        return "unknown"
    alpha = _parse_component(numbers[3], 1) if len(numbers) == 4 else 1.0
    if called[1] == "rgb":
        red, green, blue = (_parse_component(one, 255) for one in numbers[:3])
        return _seen_through((_clamp_byte(red), _clamp_byte(green), _clamp_byte(blue)), alpha)
    hue, full, light = (float(one.rstrip("%")) for one in numbers[:3])
    mixed = colorsys.hls_to_rgb(hue % 360 / 360, light / 100, full / 100)
    return _seen_through(
        (_clamp_byte(mixed[0] * 255), _clamp_byte(mixed[1] * 255), _clamp_byte(mixed[2] * 255)), alpha
    )


@lru_cache(maxsize=4_096)
def ground_of(value: str) -> Colour | Literal["none", "unknown"]:
    """Return the colour of a background; "none" where the background behind it shows."""
    if value in (*_WIDE, "none", "transparent", ""):
        return "none"
    if "url(" in value or "gradient(" in value or "image" in value:
        return "unknown"
    for token in re.findall(r"[#a-z][\w-]*(?:\([^()]*\))?", value):
        found = colour_of(token)
        if isinstance(found, tuple):
            return found
        if found == "transparent":
            return "none"
    return "unknown"


def is_similar_colour(one: Colour, other: Colour) -> bool:
    """Return whether two colours look the same to a reader."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 24


def pick_worst_sight(found: Iterable[Sight]) -> Sight:
    """Return the worst of several results: hidden before unsure before seen."""
    held = set(found)
    return "hidden" if "hidden" in held else "unsure" if "unsure" in held else "seen"


def _parse_hex_colour(digits: str) -> Colour:
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _clamp_byte(value: float) -> int:
    return max(0, min(255, round(value)))


def _parse_component(written: str, whole: float) -> float:
    return float(written[:-1]) / 100 * whole if written.endswith("%") else float(written)


def _seen_through(colour: Colour, alpha: float) -> Colour | Literal["transparent", "unknown"]:
    if alpha <= 0.1:
        return "transparent"
    return colour if alpha >= 0.5 else "unknown"


def _parse_length(value: str) -> tuple[float, str] | None:
    """Return the number and the unit of a length; None for any other value."""
    found = _LENGTH.fullmatch(value)
    if found is None or (found[2] != "%" and found[2] not in _PIXELS):
        return None
    return float(found[1]), found[2]


def _parse_pixels(value: str) -> float | None:
    found = _parse_length(value)
    return None if found is None or found[1] == "%" else found[0] * _PIXELS[found[1]]


def _judge_ratio(value: str) -> Sight:
    """Judge a ratio from 0 to 1: opacity, zoom, scale."""
    found = _parse_length(value)
    if found is None or found[1] not in ("", "%"):
        return "seen" if value in ("normal", "none") else "unsure"
    share = found[0] / 100 if found[1] else found[0]
    return "hidden" if abs(share) <= 0.1 else "unsure" if abs(share) < 0.4 else "seen"


def _font_size(value: str) -> Sight:
    if value in _SIZES:
        return "seen"
    found = _parse_length(value)
    if found is None:
        return "unsure"
    pixels = found[0] * (0.16 if found[1] == "%" else _PIXELS[found[1]])
    return "hidden" if pixels <= 2 else "unsure" if pixels < 8 else "seen"


def _judge_font(value: str) -> Sight:
    sizes = [one.partition("/")[0] for one in value.split()]
    lengths = [one for one in sizes if _parse_length(one) is not None and not one.isdigit()]
    if "(" in value:
        return "unsure"
    return pick_worst_sight(_font_size(one) for one in lengths)


def _judge_size(value: str, others: Mapping[str, str]) -> Sight:
    if value in _FREE:
        return "seen"
    found = _parse_length(value)
    if found is None:
        return "unsure"
    if found[0] == 0:
        return "hidden"
    if found[1] == "%" or found[0] * _PIXELS[found[1]] >= 8:
        return "seen"
    cut = {"hidden", "clip", "scroll", "auto"} & set(
        " ".join(others.get(name, "") for name in ("overflow", "overflow-x", "overflow-y")).split()
    )
    return "hidden" if cut or others.get("contain") else "seen"


def _judge_position(name: str, value: str) -> Sight:
    return pick_worst_sight(_judge_offset(name, one) for one in re.split(r"[ /,]+", value))


def _judge_offset(name: str, value: str) -> Sight:
    if value in ("auto", "none", "hanging", "each-line"):
        return "seen"
    found = _parse_length(value)
    if found is None:
        return "unsure"
    number, unit = found
    if unit == "%":
        return "seen" if -100 < number <= 100 else "unsure"
    pixels = number * _PIXELS[unit]
    if pixels <= -100 or (unit in ("vw", "vmax") and number >= 100):
        return "hidden"
    return "seen" if pixels < 2_000 else "unsure"


def _judge_transform(value: str) -> Sight:
    if value == "none":
        return "seen"
    found = re.findall(r"([a-z0-9]+)\(([^()]*)\)", value)
    if re.sub(r"[a-z0-9]+\([^()]*\) ?", "", value) or not found:
        return "unsure"
    return pick_worst_sight(_judge_transform_function(name, given.split(",")) for name, given in found)


def _judge_transform_function(name: str, given: list[str]) -> Sight:
    if name.startswith("translate"):
        return pick_worst_sight(_judge_offset(name, one) for one in given)
    if name.startswith("scale"):
        return pick_worst_sight(_judge_ratio(one) for one in given)
    return "seen" if name in ("rotate", "rotatez") else "unsure"


def _judge_clip(value: str) -> Sight:
    if value in ("auto", "none"):
        return "seen"
    cut = re.match(r"rect\((?:0|1)(?:px)?[ ,)]|inset\((?:100|50)%|(?:circle|ellipse)\(0", value)
    return "hidden" if cut else "unsure"


def _judge_filter(value: str) -> Sight:
    if found := re.search(r"(?:^| )opacity\(([^()]*)\)", value):
        return pick_worst_sight(("unsure" if found[0] != value else "seen", _judge_ratio(found[1])))
    return "seen" if _PLAIN_FILTER.fullmatch(value) else "unsure"


def _make_keyword_judge(*plain: str) -> "_Words":
    return _Words(frozenset(plain))


class _Words:
    """Judges a property by keyword: some hide, some show, and no other is understood."""

    def __init__(self, plain: frozenset[str], hidden: frozenset[str] = frozenset()) -> None:
        self._plain, self._hidden = plain, hidden

    def __call__(self, value: str) -> Sight:
        if value in self._hidden:
            return "hidden"
        return "seen" if value in self._plain else "unsure"


def _judge_spacing(value: str) -> Sight:
    pixels = _parse_pixels(value)
    return "seen" if value == "normal" or (pixels is not None and pixels > -3) else "unsure"


def _judge_line_height(value: str) -> Sight:
    found = _parse_length(value)
    return "seen" if value == "normal" or (found is not None and found[0] > 0.3) else "unsure"


def _judge_z_index(value: str) -> Sight:
    return "seen" if value == "auto" or value.isdigit() else "unsure"


def _judge_text_fill(value: str) -> Sight:
    found = colour_of(value)
    return "hidden" if found == "transparent" else "seen" if value == "currentcolor" else "unsure"


_JUDGES: Final[Mapping[str, Callable[[str], Sight]]] = {
    "display": _Words(_DISPLAYS, frozenset({"none"})),
    "visibility": _Words(frozenset({"visible"}), frozenset({"hidden", "collapse"})),
    "content-visibility": _Words(frozenset({"visible", "auto"}), frozenset({"hidden"})),
    "opacity": _judge_ratio,
    "zoom": _judge_ratio,
    "scale": _judge_ratio,
    "font-size": _font_size,
    "font": _judge_font,
    "transform": _judge_transform,
    "clip": _judge_clip,
    "clip-path": _judge_clip,
    "filter": _judge_filter,
    "mask": _make_keyword_judge("none"),
    "mask-image": _make_keyword_judge("none"),
    "-webkit-mask": _make_keyword_judge("none"),
    "-webkit-mask-image": _make_keyword_judge("none"),
    "mix-blend-mode": _make_keyword_judge("normal"),
    "z-index": _judge_z_index,
    "letter-spacing": _judge_spacing,
    "word-spacing": _judge_spacing,
    "line-height": _judge_line_height,
    "-webkit-text-fill-color": _judge_text_fill,
    "-webkit-text-security": _make_keyword_judge("none"),
    "all": _make_keyword_judge(),
    "rotate": _make_keyword_judge("none"),
    "offset-path": _make_keyword_judge("none"),
}
