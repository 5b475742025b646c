"""The vectors of docs/trace-format.md hold for our code, and for a reader who has only that page."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from tests.proves import proves
from traces.core import canonical, state_patch
from traces.core.integrity import chain
from traces.core.sealed_references import Place, format_sealed_reference
from traces.sealed_values import sealed_payload

PAGE = Path(__file__).resolve().parents[3] / "docs" / "trace-format.md"
Vector = dict[str, Any]


def vectors() -> list[Vector]:
    """What the page lists."""
    block = PAGE.read_text().partition("```json\n")[2].partition("```")[0]
    return [json.loads(line) for line in block.splitlines()]


def readers_json(value: Any) -> bytes:
    """The canonical form as the page describes it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def readers_sha(*parts: bytes) -> str:
    """SHA-256 as hex."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


def readers_decimal(text: str) -> str:
    """A decimal as the page describes it."""
    plain = f"{Decimal(text):f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain == "-0" else plain


def readers_event(vector: Vector) -> str:
    """An event's hash: format, previous hash, envelope, body."""
    columns = {name: vector[name] for name in ("run", "seq", "at", "phase", "kind", "actor")}
    body, previous = vector["body"].encode(), bytes.fromhex(vector["previous"])
    return readers_sha(b"interlock event 1\0", previous, readers_json(columns), b"\0", body)


def readers_record(vector: Vector) -> str:
    """A record's hash: format, previous hash, body."""
    return readers_sha(b"interlock record 1\0", bytes.fromhex(vector["previous"]), vector["body"].encode())


def readers_patch(vector: Vector) -> str:
    """The state after a patch."""
    state = dict(vector["state"])
    for name, change in vector["patch"].items():
        if "set" in change:
            state[name] = change["set"]
        else:
            kept = {key: value for key, value in state[name].items() if key not in change.get("drop", [])}
            state[name] = kept | change.get("put", {})
    return readers_json(state).decode()


def readers_reference(vector: Vector) -> str:
    """A sealed value's reference: its ciphertext, the payload that holds it, and that one's digest."""
    kept = {"kind": vector["kind"], "place": vector["place"], "v": 1}
    plain = json.dumps(vector["value"], ensure_ascii=False).encode()
    plain += b" " * (-len(plain) % 64)
    box = AESSIV(bytes.fromhex(vector["key"])).encrypt(plain, [readers_json(kept)])
    body = readers_json({**kept, "box": b64encode(box).decode()})
    return f"[sealed:{vector['kind']}:{readers_sha(bytes.fromhex(vector['salt']), body)}]"


READERS: dict[str, Callable[[Vector], Any]] = {
    "canonical": lambda v: readers_json(v["value"]).decode(),
    "decimals": lambda v: [readers_decimal(value) for value in v["values"]],
    "time": lambda v: datetime.fromisoformat(v["value"]).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    "domain digest": lambda v: readers_sha(v["domain"].encode(), b"\0", readers_json(v["value"])),
    "payload digest": lambda v: readers_sha(bytes.fromhex(v["salt"]), v["body"].encode()),
    "event hash": readers_event,
    "record hash": readers_record,
    "patch": readers_patch,
    "sealed value": readers_reference,
}


def our_event(vector: Vector) -> str:
    """An event's hash by our code."""
    content = chain.build_event_envelope(
        run=vector["run"], seq=vector["seq"], time=vector["at"], phase=vector["phase"],
        kind=vector["kind"], actor=vector["actor"], body=vector["body"].encode(),
    )  # fmt: skip
    return chain.event_hash(bytes.fromhex(vector["previous"]), content).hex()


def our_reference(vector: Vector) -> str:
    """A sealed value's reference by our code."""
    cipher, place = AESSIV(bytes.fromhex(vector["key"])), Place.model_validate(vector["place"])
    body = sealed_payload(cipher, vector["kind"], vector["value"], place)
    return format_sealed_reference(
        vector["kind"], canonical.payload_digest(bytes.fromhex(vector["salt"]), body)
    )


OURS: dict[str, Callable[[Vector], Any]] = {
    "canonical": lambda v: canonical.encode_canonical(v["value"]).decode(),
    "decimals": lambda v: [canonical.format_decimal(Decimal(value)) for value in v["values"]],
    "time": lambda v: canonical.format_canonical_time(datetime.fromisoformat(v["value"])),
    "domain digest": lambda v: canonical.compute_digest(v["domain"], canonical.encode_canonical(v["value"])),
    "payload digest": lambda v: canonical.payload_digest(bytes.fromhex(v["salt"]), v["body"].encode()),
    "event hash": our_event,
    "record hash": lambda v: chain.record_hash(bytes.fromhex(v["previous"]), v["body"].encode()).hex(),
    "patch": lambda v: canonical.encode_canonical(state_patch.apply_patch(v["state"], v["patch"])).decode(),
    "sealed value": our_reference,
}  # fmt: skip
ANSWER = {
    "canonical": "bytes",
    "decimals": "texts",
    "time": "text",
    "domain digest": "digest",
    "payload digest": "digest",
    "event hash": "hash",
    "record hash": "hash",
    "patch": "bytes",
    "sealed value": "reference",
}


def test_there_are_ten_at_least_and_one_of_each_kind() -> None:
    assert len(vectors()) >= 10
    assert {vector["vector"] for vector in vectors()} == ANSWER.keys()


@proves("R-TRACE-4", part="documented algorithm")
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["vector"])
def test_a_vector_holds_for_us_and_for_a_stranger(vector: Vector) -> None:
    kind = vector["vector"]
    expected = vector[ANSWER[kind]]
    assert OURS[kind](vector) == expected
    assert READERS[kind](vector) == expected
