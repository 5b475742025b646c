"""Sealed references: what stands in place of a sensitive value wherever it is shown, stored or hashed.

A reference is `[sealed:<kind>:<digest>]`; the digest names a payload of the same run that holds the value
encrypted, and says for what it was sealed. Equal values for the same place give the same reference within a
run, so digests, replays and repetitions compare references (docs/trace-format.md).
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
# A sealed value may hold references itself: what was taken out of it before.
DEEPEST = 8
# The kind of a sealed value that is no text: what is sealed is its canonical form.
JSON_VALUE = "secret_value"
# A shorter value stands in too many texts by chance to be looked for there.
LEAST = 6
# Nor is a shorter part of a list or object.
SHORTEST_LEAF = 4
_BEGINS = "[sealed:"


class Place(BaseModel):
    """What a value was sealed for. `source` is where it was written: in a call, by the model or whoever
    edited it, or in the task; `tool` the tool that was called, `member` the name it stood under."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: Literal["call", "goal"]
    tool: str = ""
    member: str = ""


class Sealed(BaseModel):
    """The payload of a sealed value; `box` is the ciphertext in base64, which binds all the rest."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    v: Literal[1] = 1
    kind: str
    place: Place
    box: str


class Reference(NamedTuple):
    """A reference where it stands: the pointer, the name of the member, the payload's digest (hex), and the
    kind that it says."""

    pointer: str
    member: str
    digest: str
    kind: str


Seal = Callable[[str, str, str], str]
"""Seals a secret: given its kind, the secret, and the name of the member it stands under."""


def format_sealed_reference(kind: str, digest: str) -> str:
    """The reference to the payload `digest`."""
    return f"[sealed:{kind}:{digest}]"


def holds_reference(text: str) -> bool:
    """Whether a reference stands in the text."""
    return _BEGINS in text and REFERENCE.search(text) is not None


def extract_references(value: Any, pointer: str = "", member: str = "") -> Iterator[Reference]:
    """Every reference in a JSON value, in its texts and in the names of its members."""
    if isinstance(value, str):
        if _BEGINS in value:
            yield from (Reference(pointer, member, found[2], found[1]) for found in REFERENCE.finditer(value))
    elif isinstance(value, dict):
        for name, held in value.items():
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if _BEGINS in name:
                # What stands in a name stands under none.
                yield from (Reference(place, "", found[2], found[1]) for found in REFERENCE.finditer(name))
            yield from extract_references(held, place, name)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from extract_references(held, f"{pointer}/{number}", member)


def read_sealed(body: bytes) -> Sealed | None:
    """The payload of a sealed value; None where the bytes are none."""
    try:
        return Sealed.model_validate_json(body)
    except ValidationError:
        return None


def with_sealed(value: Any, seal: Seal, name: str = "", *, secret: bool = False) -> Any:
    """The same JSON value with a reference in place of each secret that a redaction would take out of it.
    `name` is the member's that it stands under; `secret`: it stands within a value that is one."""
    secret = (secret or is_secret_name(name)) and not is_schema(value)
    if isinstance(value, str):
        return _sealed_text(value, name, seal, secret=secret)
    if secret and not is_bare(value) and not any(extract_references(value)):
        return seal(JSON_VALUE, canonical_outside(value).decode(), name)
    if isinstance(value, dict):
        # What is sealed is sealed for the name as it is kept: the place stands beside it in the clear.
        names = {key: _sealed_text(key, "", seal) for key in value}
        return {names[key]: with_sealed(held, seal, names[key], secret=secret) for key, held in value.items()}
    if isinstance(value, list):
        return [with_sealed(held, seal, name, secret=secret) for held in value]
    return value


def with_known(value: Any, known: Mapping[str, str], seal: Seal, name: str = "") -> Any:
    """The same JSON value with a reference in place of each value of `known` (value to reference) that stands
    in a text of it: sealed for where it stands."""
    if isinstance(value, str):
        return _without_known(value, known, lambda secret: seal("secret_field", secret, name))
    if isinstance(value, dict):
        return {key: with_known(held, known, seal, key) for key, held in value.items()}
    if isinstance(value, list):
        return [with_known(held, known, seal, name) for held in value]
    return value


def text_without(text: str, known: Mapping[str, str]) -> str:
    """The text with its reference in place of each value of `known` (value to reference)."""
    return _without_known(text, known, known.__getitem__)


def with_opened(value: Any, open_one: Callable[[str], str]) -> Any:
    """The same JSON value with what `open_one` gives for a digest in place of each reference. Raises
    ValueError where a reference says of a text that it is none."""
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
    """The texts by which an answer may repeat what was sealed: itself, and what a list or object holds."""
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
    """The text with what each reference stands for, also within what was sealed."""
    if _BEGINS not in text or depth >= DEEPEST:
        return text
    return REFERENCE.sub(lambda found: opened_text(open_one(found[2]), open_one, depth + 1), text)


def may_open(place: Place, *, tool: str, member: str, by_model: bool) -> bool:
    """Whether a value that was sealed for `place` may be sent as `member` of a call to `tool`.

    What the workflow or a tool's declaration puts somewhere may go there. A model may only repeat a value in
    the same member of the same tool, and put one of the task's into a member of the same name or one that
    holds secrets: never into a message.
    """
    if not by_model:
        return True
    if place.source == "goal":
        return is_secret_name(member) or (bool(member) and member == place.member)
    return (tool, member) == (place.tool, place.member)


def _sealed_text(text: str, name: str, seal: Seal, *, secret: bool = False) -> str:
    """The text with references that open to exactly this text; the whole of it sealed where its parts would
    not. References that were there before stay as they are: whether these may be opened is asked of each."""
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
    """The text in its order: references that are not among those just `made`, and what is between them."""
    end = 0
    for found in REFERENCE.finditer(text):
        if found[0] not in made:
            yield text[end : found.start()], False
            yield found[0], True
            end = found.end()
    yield text[end:], False


def _without_known(text: str, known: Mapping[str, str], put: Callable[[str], str]) -> str:
    """The text with what `put` gives in place of each known value, the longest first; references stay."""
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
    """What is encrypted, so long that its length tells little, and what the ciphertext binds beside it."""
    plain = orjson.dumps(secret)
    bound = orjson.dumps({"kind": kind, "place": place.model_dump(), "v": 1}, option=orjson.OPT_SORT_KEYS)
    return plain.ljust(-(-len(plain) // 64) * 64), bound
