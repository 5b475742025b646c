"""Redaction of secrets from a trace, and of personal data where policy requires it (R-TRACE-5).
Removed content leaves a mark with its kind, such as `[redacted:api_key]`: the redaction is recorded in the
hashed bytes themselves. Redacting twice changes nothing."""

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from traces.core.integrity.schema_validation import is_schema
from traces.core.json_extent import value_end

DEEPEST = 4
PASSES = 8
_WORD = r"[A-Za-z0-9_-]"
# Every pattern ends in the same open-ended class, so that no part of a key remains after its mark.
_KEYS = (
    rf"ilk_[0-9a-f]{{32}}_{_WORD}{{8,}}",
    rf"[prs]k-{_WORD}{{16,}}",
    rf"[rs]k_(?:live|test)_{_WORD}{{16,}}",
    rf"whsec_{_WORD}{{16,}}[+/=A-Za-z0-9_-]*",
    rf"gh[pousr]_{_WORD}{{20,}}",
    rf"github_pat_{_WORD}{{20,}}",
    rf"glpat-{_WORD}{{16,}}",
    rf"xox[abeoprs]-{_WORD}{{10,}}",
    rf"(?:npm|hf)_{_WORD}{{30,}}",
    rf"pypi-{_WORD}{{30,}}",
    rf"AIza{_WORD}{{35,}}",
    rf"A[KS]IA[0-9A-Z]{{16,}}{_WORD}*",
    rf"eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.[A-Za-z0-9_.-]{{8,}}",
)
_STANDS_FOR_A_VALUE = re.compile(r"\[redacted:[a-z_]+\]")
# A mark, or the reference of a sealed value: neither is a secret itself.
_MARK = r"\[(?:redacted:[a-z_]+|sealed:[a-z_]+:[0-9a-f]{64})\]"
_MARKS = re.compile(rf"(?:{_MARK})+")
_NAMES = (
    r"password|passwd|passphrase|secret|client[_-]?secret|(?:x[_-])?api[_-]?key|private[_-]?key"
    r"|(?:access|refresh|id|auth)[_-]?token|(?:aws[_-]?)?secret[_-]?access[_-]?key"
)
_API_KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_KEYS)})")
_BEARER = re.compile(r"(?i)(?<![a-z0-9])(bearer|authorization\s*:\s*basic)(\s+)[a-z0-9._~+/-]{16,}+=*")
_ASSIGNED = re.compile(rf"(?i)(?<![a-z0-9])({_NAMES})=(?!{_MARK})[^\s&\"';,]+")
_IN_ADDRESS = re.compile(rf"(://[^\s/:@\"]{{1,128}}:)(?!{_MARK}@)[^\s/@\"]{{1,256}}@")
_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\[nr])*+")
_BLOCK_LONGEST = 20_000
# The line that ends a block may itself be incomplete.
_END_LONGEST = 1_000
_SECRET_NAME = re.compile(rf"(?i)(?:{_NAMES})")
# Few texts contain a secret; one search for these words (or an escape that could hide one) excludes the rest.
# The search runs on lower-case text, and each word begins with a literal letter, not with a character class:
# the search skips text that begins none of the words, which takes a sixth of the time.
_HINT = re.compile(
    rb"ilk_|pk[-_]|rk[-_]|sk[-_]|whsec_|gh[pousr]_|github_pat_|glpat-|xox|npm_|hf_|pypi-|aiza|a[ks]ia|eyj"
    rb"|bearer|basic|passw|passphrase|secret|api.?key|private.?key|token|:\\?/\\?/|\\u00"
)
_EMAIL = re.compile(r"(?<![\w.%+-])[\w.%+-]++@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_CARD = re.compile(r"(?<![0-9])[2-6](?:[ -]?[0-9]){12,18}(?![0-9])")
_IBAN = re.compile(r"(?<![A-Za-z0-9])([A-Z]{2})[0-9]{2}(?= ?[A-Z0-9])")
_NUMBER = re.compile(r"(?<![0-9.eE+-])[2-6][0-9]{12,18}(?![0-9.eE])")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BEGINS = frozenset('{["')
_LITERAL_OR_OPEN = re.compile(r'"(?:[^"\\]|\\.)*+("|\\?\Z)', re.DOTALL)
_ENDS_ADDRESS = re.compile(r'[\s/@"]')
# In JSON, and in JSON nested in it, any of the characters may be escaped.
_BEGINS_ADDRESS = re.compile(r"(?::|\\+u003[aA])(?:\\*+/|\\+u002[fF]){2}")
_BEGINS_ALONE = frozenset('{["0123456789')
_COLON = re.compile(r"\s*:")
_BEHIND_COLON = re.compile(r"\s*:\s*")


IBAN_LENGTHS = {
    country: length
    for length, countries in (
        (15, "NO"), (16, "BE"), (18, "DK FI FO GL NL"), (19, "MK SI"), (20, "AT BA EE KZ LT LU XK"),
        (21, "CH HR LI LV"), (22, "BG BH CR DE GB GE IE ME RS VA"), (23, "AE GI IL IQ TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"), (25, "LY PT ST"), (26, "IS TR"), (27, "FR GR IT MC MR SM"),
        (28, "AL AZ BY CY DO GT HU LB PL SV"), (29, "BR EG PS QA UA"), (30, "JO KW MU"), (31, "MT SC"),
        (32, "LC"),
    )
    for country in countries.split()
}  # fmt: skip
_OF_LENGTH = {
    length: re.compile(rf"[A-Z]{{2}}[0-9]{{2}}(?: ?[A-Z0-9]){{{length - 4}}}(?![A-Za-z0-9])")
    for length in range(15, 33)
}
_LETTERS = {ord("A") + place: str(10 + place) for place in range(26)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Number of removals of one kind."""

    kind: str
    count: int


def redact_secrets(data: bytes, *, personal: bool = False) -> tuple[bytes, tuple[Redaction, ...]]:
    """Return the bytes without secrets, and what was removed, by kind. With `personal`, e-mail addresses,
    card numbers and IBANs are removed too. Bytes without any of these are returned unchanged; JSON stays
    JSON, and everything else in it stays as it is."""
    if not personal and _HINT.search(data.lower()) is None:
        return data, ()
    found: Counter[str] = Counter()
    clean = _Cleaner(found, personal=personal).value(data.decode("utf-8", "surrogateescape"), 0)
    kinds = tuple(Redaction(kind=kind, count=found[kind]) for kind in sorted(found))
    return (clean.encode("utf-8", "surrogateescape") if kinds else data), kinds


def redact_begun(text: str) -> str:
    """Return the part of an unfinished text that may be shown already, without secrets. The part ends where
    no continuation can turn its last characters into part of a secret: its last word is held back while it
    grows, and everything after the beginning of a private key. Text that begins like JSON is parsed as JSON
    although its end is missing; at least everything that `redact_secrets` removes from the whole text is
    removed."""
    settled = text[: _find_settled_end(text)]
    if _HINT.search(settled.encode("utf-8", "replace").lower()) is None:
        return settled
    try:
        return _PartialCleaner(Counter(), personal=False).value(settled, 0)
    except ValueError:
        # An invalid escape: its content cannot be determined.
        return ""


def format_redaction_mark(kind: str) -> str:
    """Return the mark that replaces removed content."""
    return f"[redacted:{kind}]"


def replace_secrets(text: str, name: str, put: Callable[[str, str], str]) -> str:
    """Replace each secret in the text by the result of `put`, called with the kind and the secret. The text
    is the value of the member `name`. The secrets are those that `redact_secrets` would remove."""
    cleaner = _Cleaner(Counter(), personal=False, put=put)
    if text and _SECRET_NAME.fullmatch(name) is not None:
        return text if _MARKS.fullmatch(text) is not None else put("secret_field", text)
    return cleaner.value(text, 1)


def is_secret_name(name: str) -> bool:
    """Return whether every value under this name is a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def is_bare(value: Any) -> bool:
    """Return whether a JSON value under a secret's name reveals nothing. Such values are null, empty, only
    marks and references, or the schema of such a value."""
    if isinstance(value, str):
        return not value or _MARKS.fullmatch(value) is not None
    if is_schema(value):
        return True
    if isinstance(value, dict | list):
        return all(map(is_bare, value.values() if isinstance(value, dict) else value))
    return value is None


def may_hold_secret(data: bytes) -> bool:
    """Return whether the data may contain a secret; False is certain. The check costs a tenth of a full
    search."""
    return _HINT.search(data.lower()) is not None


def marked_places(value: Any) -> tuple[str, ...]:
    """Return pointers to the places of a JSON value where a mark replaces removed content. A mark may be in a
    text or in a member's name. The content of such a value is lost, so it cannot be used for an action."""
    return tuple(_marked_places(value, ""))


def has_luhn_check_digit(number: str) -> bool:
    """Return whether the digits in `number` end in a payment card's check digit."""
    digits = [int(letter) for letter in reversed(number) if letter.isdigit()]
    total = sum(digits[0::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return 13 <= len(digits) <= 19 and total % 10 == 0


class _Cleaner:
    """One redaction in progress; `found` counts by kind."""

    def __init__(
        self, found: "Counter[str]", *, personal: bool, put: Callable[[str, str], str] | None = None
    ) -> None:
        self._found = found
        self._personal = personal
        self._put = put

    def value(self, text: str, depth: int) -> str:
        """Redact JSON string by string, as an escape could hide a secret; redact anything else as text."""
        begins = _BEGINS if depth else _BEGINS_ALONE
        if depth < DEEPEST and text.lstrip()[:1] in begins and _is_json(text):
            return self._json(text, depth)
        return self._text(text)

    def _json(self, text: str, depth: int) -> str:
        parts: list[str] = []
        end, name = 0, ""
        while (literal := _LITERAL.search(text, end)) is not None:
            between = text[end : literal.start()]
            end = literal.end()
            secret = between.strip() == ":" and _SECRET_NAME.fullmatch(name) is not None
            said = _decode_literal(literal[0])
            parts += [self._numbers(between), self._literal(literal[0], said, depth, secret=secret)]
            name = said if _COLON.match(text, end) is not None else ""
            if name and _SECRET_NAME.fullmatch(name) is not None:
                end = self._value(text, end, parts)
        return "".join([*parts, self._numbers(text[end:])])

    def _value(self, text: str, end: int, parts: list[str]) -> int:
        """Remove a non-string value after a secret's name that ends at `end`; return the next offset."""
        colon = _BEHIND_COLON.match(text, end)
        if colon is None or text[colon.end() : colon.end() + 1] in ('"', ""):
            return end
        stop = value_end(text, colon.end())
        value = text[colon.end() : stop]
        if stop < 0 or not _is_json(value):
            # The value is still incomplete.
            parts.append(text[end : colon.end()])
            return len(text)
        if is_bare(orjson.loads(value)):
            return end
        parts += [text[end : colon.end()], f'"{self._mark("secret_field", value)}"']
        return stop

    def _literal(self, literal: str, said: str, depth: int, *, secret: bool) -> str:
        """Return the redacted literal: the same one if nothing was removed."""
        if secret and said and _MARKS.fullmatch(said) is None:
            return f'"{self._mark("secret_field", said)}"'
        clean = self.value(said, depth + 1)
        # Lone surrogates were escapes in the literal and must become escapes again.
        return literal if clean == said else json.dumps(clean, ensure_ascii=not _is_encodable(clean))

    def _text(self, text: str) -> str:
        """Repeat until nothing is found: the removed content may have preceded another secret."""
        for _ in range(PASSES):
            before, text = text, self._secrets(text)
            text = self._personal_data(text) if self._personal else text
            if text == before:
                break
        return text

    def _secrets(self, text: str) -> str:
        text = self._blocks(text)
        text = _API_KEY.sub(lambda match: self._mark("api_key", match[0]), text)
        text = _BEARER.sub(lambda match: self._behind(match, "bearer", f"{match[1]}{match[2]}"), text)
        text = _ASSIGNED.sub(lambda match: self._behind(match, "secret_field", f"{match[1]}="), text)
        return _IN_ADDRESS.sub(lambda match: self._behind(match, "password", match[1], "@"), text)

    def _personal_data(self, text: str) -> str:
        text = _EMAIL.sub(lambda match: self._mark("e_mail", match[0]), text)
        return _CARD.sub(self._if_card(""), self._ibans(text))

    def _mark(self, kind: str, secret: str) -> str:
        self._found[kind] += 1
        return format_redaction_mark(kind) if self._put is None else self._put(kind, secret)

    def _behind(self, match: "re.Match[str]", kind: str, before: str, after: str = "") -> str:
        """Return the match with the secret between `before` and `after` removed."""
        secret = match[0][len(before) : len(match[0]) - len(after)]
        return f"{before}{self._mark(kind, secret)}{after}"

    def _blocks(self, text: str) -> str:
        """Remove private keys, complete or cut off; each end is searched once, however many keys begin."""
        parts: list[str] = []
        at = 0
        for begin, stop, _ in _key_blocks(text):
            parts += [text[at : begin.start()], self._mark("private_key", text[begin.start() : stop])]
            at = stop
        return "".join([*parts, text[at:]])

    def _ibans(self, text: str) -> str:
        """Remove IBANs. A candidate has the length of its country; the text after it is searched again."""
        parts: list[str] = []
        at = since = 0
        while (match := _IBAN.search(text, at)) is not None:
            end = _iban_end(text, match.start(), IBAN_LENGTHS.get(match[1], 0))
            at = end or match.end()
            if end:
                parts += [text[since : match.start()], self._mark("iban", text[match.start() : end])]
                since = end
        return "".join([*parts, text[since:]])

    def _numbers(self, between: str) -> str:
        """Remove card numbers that are JSON numbers."""
        return _NUMBER.sub(self._if_card('"'), between) if self._personal else between

    def _if_card(self, quote: str) -> Callable[["re.Match[str]"], str]:
        return lambda match: (
            f"{quote}{self._mark('card', match[0])}{quote}" if has_luhn_check_digit(match[0]) else match[0]
        )


class _PartialCleaner(_Cleaner):
    """Redaction of a text whose end is missing."""

    def value(self, text: str, depth: int) -> str:
        """Redact text that begins like JSON string by string, then as text, because it may not be JSON. An
        open string is closed temporarily."""
        if depth < DEEPEST and text.lstrip()[:1] in _BEGINS:
            closing = '"' if _is_open(text) else ""
            text = self._json(text + closing, depth).removesuffix(closing)
        return self._text(text)


def _marked_places(value: Any, pointer: str) -> Iterator[str]:
    if isinstance(value, str):
        if _STANDS_FOR_A_VALUE.search(value) is not None:
            yield pointer or "/"
    elif isinstance(value, dict):
        for name, held in value.items():
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if _STANDS_FOR_A_VALUE.search(name) is not None:
                yield place
            yield from _marked_places(held, place)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from _marked_places(held, f"{pointer}/{number}")


def _is_open(text: str) -> bool:
    """Return whether the last string of a JSON text has no end."""
    ends = [literal[1] for literal in _LITERAL_OR_OPEN.finditer(text)]
    return bool(ends) and ends[-1] != '"'


def _find_settled_end(text: str) -> int:
    """Return the start of the part that may still become a secret. Such a part is a key's letters, a URL with
    a password, or the block of a private key."""
    end = len(text)
    while end and "!" <= text[end - 1] <= "~":
        end -= 1
    begun = deque(_BEGINS_ADDRESS.finditer(text, 0, end), maxlen=1)
    if begun and _ENDS_ADDRESS.search(text, begun[0].end(), end) is None:
        end = begun[0].start()
    # The length of a block in JSON without its escapes is known only once the block is complete.
    longest = len(text) if text.lstrip()[:1] in _BEGINS else _BLOCK_LONGEST + _END_LONGEST
    for begin, _, closed in _key_blocks(text[:end]):
        if not closed and end - begin.end() <= longest:
            return begin.start()
    return end


def _key_blocks(text: str) -> Iterator["tuple[re.Match[str], int, bool]"]:
    """Yield each private key's beginning, the end of its removal, and whether its end marker is present."""
    at, end = 0, _BLOCK_END.search(text)
    while (begin := _BLOCK.search(text, at)) is not None:
        while end is not None and end.start() < begin.end():
            end = _BLOCK_END.search(text, end.end())
        if end is not None and end.start() - begin.end() <= _BLOCK_LONGEST:
            at = end.end()
            yield begin, at, True
        else:
            body = _BLOCK_BODY.match(text, begin.end())
            at = begin.end() if body is None else body.end()
            yield begin, at, False


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True


def _decode_literal(literal: str) -> str:
    return str(json.loads(literal, strict=False)) if "\\" in literal else literal[1:-1]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _iban_end(text: str, start: int, length: int) -> int:
    """Return the end of the IBAN that starts at `start`; 0 if there is none."""
    match = _OF_LENGTH[length].match(text, start) if length else None
    if match is None:
        return 0
    compact = match[0].replace(" ", "")
    return match.end() if int((compact[4:] + compact[:4]).translate(_LETTERS)) % 97 == 1 else 0
