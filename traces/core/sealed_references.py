"""Sealed references: replacements of sensitive values wherever these are shown, stored or hashed.

A reference is `[sealed:<kind>:<digest>]`; the digest names a payload of the same run that contains the
encrypted value and the place for which it was sealed. Within a run, equal values for the same place give the
same reference, so digests, replays and repetitions compare references (docs/trace-format.md).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from traces.core.canonical import canonical_outside
from traces.core.integrity.schema_validation import is_schema
from traces.core.redaction import is_bare, is_secret_name, replace_secrets

REFERENCE = re.compile(r"\[sealed:([a-z_]{1,32}):([0-9a-f]{64})\]")
# A sealed value may contain references itself: to values that were removed from it before.
DEEPEST = 8
# The kind of a sealed value that is not a text: its canonical form is sealed.
JSON_VALUE = "secret_value"
# A shorter value occurs by chance in too many texts to be searched for.
LEAST = 6
# Shorter parts of a list or object are not searched for either.
SHORTEST_LEAF = 4
_BEGINS = "[sealed:"


class Place(BaseModel):
    """The place for which a value was sealed.

    `source` is where the value was written: in a call, by the model or an editor of the call, or in the task.
    `tool` is the called tool, `member` the name of the member that contained the value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: Literal["call", "goal"]
    tool: str = ""
    member: str = ""


class Sealed(BaseModel):
    """The payload of a sealed value.

    `box` is the ciphertext in base64, which authenticates all other fields.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    v: Literal[1] = 1
    kind: str
    place: Place
    box: str


class Reference(NamedTuple):
    """One occurrence of a reference.

    The fields are the pointer, the name of the member, the payload's digest (hex), and the kind in the
    reference.
    """

    pointer: str
    member: str
    digest: str
    kind: str


Seal = Callable[[str, str, str], str]
"""Seals a secret: given its kind, the secret, and the name of the member it stands under."""


def format_sealed_reference(kind: str, digest: str) -> str:
    """Return the reference to the payload `digest`."""
    return f"[sealed:{kind}:{digest}]"


def holds_reference(text: str) -> bool:
    """Return whether the text contains a reference."""
    return _BEGINS in text and REFERENCE.search(text) is not None


def extract_references(value: Any, pointer: str = "", member: str = "") -> Iterator[Reference]:
    """Yield every reference in a JSON value, in its texts and in the names of its members."""
    if isinstance(value, str):
        if _BEGINS in value:
            yield from (Reference(pointer, member, found[2], found[1]) for found in REFERENCE.finditer(value))
    elif isinstance(value, dict):
        for name, held in value.items():
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if _BEGINS in name:
                # A reference in a name is not the value of any member.
                yield from (Reference(place, "", found[2], found[1]) for found in REFERENCE.finditer(name))
            yield from extract_references(held, place, name)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from extract_references(held, f"{pointer}/{number}", member)


def read_sealed(body: bytes) -> Sealed | None:
    """Parse the payload of a sealed value; return None if the bytes are not one."""
    try:
        return Sealed.model_validate_json(body)
    except ValidationError:
        return None


def with_sealed(value: Any, seal: Seal, name: str = "", *, secret: bool = False) -> Any:
    """Return the JSON value with a reference in place of each secret that a redaction would remove.

    `name` is the name of the member that contains the value; `secret`: the value is part of a secret value.
    """
    secret = (secret or is_secret_name(name)) and not is_schema(value)
    if isinstance(value, str):
        return _sealed_text(value, name, seal, secret=secret)
    if secret and not is_bare(value) and not any(extract_references(value)):
        return seal(JSON_VALUE, canonical_outside(value).decode(), name)
    if isinstance(value, dict):
        # A value is sealed for the name as stored, because the place is stored in the clear.
        names = {key: _sealed_text(key, "", seal) for key in value}
        return {names[key]: with_sealed(held, seal, names[key], secret=secret) for key, held in value.items()}
    if isinstance(value, list):
        return [with_sealed(held, seal, name, secret=secret) for held in value]
    return value


def with_known(value: Any, known: Mapping[str, str], seal: Seal, name: str = "") -> Any:
    """Return the JSON value with a reference in place of each value of `known` that occurs in a text.

    `known` maps values to references. Each occurrence is sealed for its own place.
    """
    if isinstance(value, str):
        return _without_known(value, known, lambda secret: seal("secret_field", secret, name))
    if isinstance(value, dict):
        return {key: with_known(held, known, seal, key) for key, held in value.items()}
    if isinstance(value, list):
        return [with_known(held, known, seal, name) for held in value]
    return value


def text_without(text: str, known: Mapping[str, str]) -> str:
    """Return the text with its reference in place of each value of `known` (value to reference)."""
    return _without_known(text, known, known.__getitem__)


def with_opened(value: Any, open_one: Callable[[str], str]) -> Any:
    """Return the JSON value with the result of `open_one` for a digest in place of each reference.

    Raises: ValueError if a reference of a JSON value opens to a text that is not JSON.
    """
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole is not None and whole[1] == JSON_VALUE:
            return orjson.loads(open_one(whole[2]))
        return opened_text(value, open_one)
    if isinstance(value, dict):
        return {opened_text(key, open_one): with_opened(held, open_one) for key, held in value.items()}
    if isinstance(value, list):
        return [with_opened(held, open_one) for held in value]
    return value


def iterate_secret_texts(kind: str, secret: str) -> Iterator[str]:
    """Yield the texts with which an answer may repeat a sealed value: the value, and its parts if any.

    The parts are those of a list or object.
    """
    yield secret
    if kind == JSON_VALUE:
        yield from _iterate_leaves(orjson.loads(secret))


def _iterate_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for held in value.values() if isinstance(value, dict) else value:
            yield from (leaf for leaf in _iterate_leaves(held) if len(leaf) >= SHORTEST_LEAF)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield orjson.dumps(value).decode()


def opened_text(text: str, open_one: Callable[[str], str], depth: int = 0) -> str:
    """Return the text with each reference replaced by its value, also within sealed values."""
    if _BEGINS not in text or depth >= DEEPEST:
        return text
    return REFERENCE.sub(lambda found: opened_text(open_one(found[2]), open_one, depth + 1), text)


def may_open(place: Place, *, tool: str, member: str, by_model: bool) -> bool:
    """Return whether a value sealed for `place` may be sent as `member` of a call to `tool`.

    The workflow or a tool's declaration may put a value anywhere. A model may only repeat a value in the same
    member of the same tool, and put a value of the task into a member of the same name or one that holds
    secrets: never into a message.
    """
    if not by_model:
        return True
    if place.source == "goal":
        return is_secret_name(member) or (bool(member) and member == place.member)
    return (tool, member) == (place.tool, place.member)


def _sealed_text(text: str, name: str, seal: Seal, *, secret: bool = False) -> str:
    """Return the text with references that open to exactly this text.

    The whole text is sealed if its parts would not open to the text. References that were there before are
    kept; each of them needs a separate permission to be opened.
    """
    made: dict[str, str] = {}

    def put(kind: str, found: str) -> str:
        return "".join(
            part if is_reference or not part else _made(kind, part)
            for part, is_reference in _split_references(found, made)
        )

    def _made(kind: str, part: str) -> str:
        reference = seal(kind, part, name)
        made[reference] = part
        return reference

    if secret and not is_secret_name(name):
        return text if is_bare(text) else put("secret_field", text)
    clean = replace_secrets(text, name, put)
    if not made or _restore_references(clean, made) == text:
        return clean
    made.clear()
    return put("secret_field", text)


def _split_references(text: str, made: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Split the text into references and the parts between them, in order.

    References that are in `made`, and therefore new, are not split off.
    """
    end = 0
    for found in REFERENCE.finditer(text):
        if found[0] not in made:
            yield text[end : found.start()], False
            yield found[0], True
            end = found.end()
    yield text[end:], False


def _without_known(text: str, known: Mapping[str, str], put: Callable[[str], str]) -> str:
    """Replace each known value in the text by the result of `put`, the longest first; references are kept."""
    for secret in sorted(known, key=len, reverse=True):
        if len(secret) >= LEAST and secret in text and not holds_reference(secret):
            text = "".join(
                part if is_reference else part.replace(secret, put(secret))
                for part, is_reference in _split_references(text, {})
            )
    return text


def _restore_references(text: str, made: dict[str, str]) -> str:
    for _ in range(DEEPEST):
        if not any(reference in text for reference in made):
            break
        text = REFERENCE.sub(lambda found: made.get(found[0], found[0]), text)
    return text


def pad_plaintext(secret: str, kind: str, place: Place) -> tuple[bytes, bytes]:
    """Return the padded plaintext and the data that the ciphertext authenticates.

    The padding makes the length reveal little.
    """
    plain = orjson.dumps(secret)
    bound = orjson.dumps({"kind": kind, "place": place.model_dump(), "v": 1}, option=orjson.OPT_SORT_KEYS)
    return plain.ljust(-(-len(plain) // 64) * 64), bound
