"""One normal form for text that reads the same, and decoding of encoded text (R-TOOL-16).

Everything here takes time linear in the text: no pattern can be made to scan it repeatedly.
"""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterable, Iterator
from unicodedata import normalize
from urllib.parse import unquote

# Characters without width on a screen: joiners, direction marks, fillers, tags, variation selectors.
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
MOST_DECODED = 1_000_000
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}={0,2}")
_WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/]{40})\r?\n(?=[A-Za-z0-9+/])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x)?[0-9a-fA-F]{2}[ :,-]?){6,}(?![0-9A-Za-z])")
_CODES = re.compile(r"(?<!\d)(?:\d{2,3}[ ,;]{1,2}){5,}\d{2,3}(?!\d)")
_ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})")
_QUOTED = re.compile(r"=([0-9A-F]{2})")
_SPELT = re.compile(r" ?[\[({<]? ?\b(at|dot|punkt|slash|dash|hyphen|underscore)\b ?[\])}>]? ?")
_SIGNS = {"at": "@", "dot": ".", "punkt": ".", "slash": "/", "underscore": "_"}
_NOT_LETTERS = re.compile(r"[\W_]+")
_ASCII = {code: None for code in range(128) if not chr(code).isalnum()}
_ROUNDS = 2
_LONGEST_SPELT = 200_000


def normalize_text(text: str) -> str:
    """Unify compatibility forms, case and white space.

    Invisible characters are kept, because they distinguish values.
    """
    if not text.isascii():
        text = normalize("NFKC", text)
    return " ".join(text.casefold().split())


def compute_skeleton(text: str) -> str:
    """Return only the letters and digits, without accents, so that formatting does not matter."""
    if text.isascii():
        return text.casefold().translate(_ASCII)
    shown = HIDDEN.sub("", text)
    return _NOT_LETTERS.sub("", normalize("NFKD", normalize("NFKC", shown).casefold()))


def has_hidden_characters(text: str) -> bool:
    """Return whether the text holds characters that are invisible on a screen."""
    return not text.isascii() and HIDDEN.search(text) is not None


def decode_layers(text: str) -> tuple[str, ...]:
    """Return the text, its decoded content, and the decoded content of that."""
    found = [text]
    for _ in range(_ROUNDS):
        under = "\n".join(_limit_decoded_size(_decode_embedded_codes(found[-1])))
        if not under:
            break
        found.append(under)
    return tuple(found)


def encode_rot13(text: str) -> str:
    """Return the text in ROT13, which is its own inverse."""
    return codecs.encode(text, "rot13")


def _limit_decoded_size(parts: Iterable[str]) -> Iterator[str]:
    room = MOST_DECODED
    for part in parts:
        if part and room > 0:
            yield part[:room]
            room -= len(part)


def _decode_embedded_codes(text: str) -> Iterator[str]:
    for marker, decode in _TOKENS:
        if marker in text:
            yield from (
                told for token in text.split() if marker in token and (told := decode(token)) != token
            )
    joined = _WRAPPED.sub("", text)
    yield from (_bytes_of(_from_base64, run) for run in _BASE64.findall(joined))
    yield from (_bytes_of(_from_hex, run) for run in _HEX.findall(text))
    yield from (_from_codes(run) for run in _CODES.findall(text))
    if len(text) <= _LONGEST_SPELT and (spelt := _decode_spelled_address(text)):
        yield spelt


def _decode_escapes(token: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), token)


def _decode_quoted_printable(token: str) -> str:
    return _QUOTED.sub(lambda found: chr(int(found[1], 16)), token)


_TOKENS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("%", unquote),
    ("&", html.unescape),
    ("\\", _decode_escapes),
    ("=", _decode_quoted_printable),
)


def _bytes_of(decode: Callable[[str], bytes], run: str) -> str:
    """Return the decoded run if it is printable text, else an empty string."""
    try:
        told = decode(run).decode()
    except (ValueError, binascii.Error):
        return ""
    return told if told.isprintable() or all(sign.isprintable() or sign.isspace() for sign in told) else ""


def _from_base64(run: str) -> bytes:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4))


def _from_hex(run: str) -> bytes:
    return bytes.fromhex(re.sub(r"0x|[ :,-]", "", run))


def _from_codes(run: str) -> str:
    codes = [int(code) for code in re.findall(r"\d+", run)]
    return "".join(map(chr, codes)) if all(32 <= code < 127 for code in codes) else ""


def _decode_spelled_address(text: str) -> str:
    """Decode an address that is spelled out, such as "ada at example dot org"."""
    told = _SPELT.sub(lambda found: _SIGNS.get(found[1], "-"), normalize_text(text))
    return told if "@" in told or "." in told else ""
