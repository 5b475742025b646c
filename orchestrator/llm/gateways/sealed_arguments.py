"""Seals sensitive values in the arguments that a model writes, before any of them are stored."""

import orjson

from orchestrator.core.calls.open_effects import opened_key
from orchestrator.core.common.argument_parsing import Arguments, parse_arguments
from tenancy.core.json_reading import MemberRepeated, read_json
from traces.core.canonical import canonical_outside, compute_digest
from traces.core.redaction import may_hold_secret
from traces.core.sealed_references import Place, extract_references, with_known, with_sealed
from traces.sealed_values import Vault

UNNAMED = '"(sealed)"'


def sealed_arguments(raw: str, tool: str, vault: Vault) -> tuple[str, frozenset[str]]:
    """Return a call's arguments with references for sensitive values, and the kinds of sealed values.

    Arguments without sensitive values are returned unchanged, and so are those that are not an object,
    because they are never sent.

    A value that the vault knows is sensitive in every position: it is sealed for its position, so that the
    sent text equals the written text. An exception is a call that was already open before the value was
    known to be sensitive: the same text is the same call, and is sealed as it was.
    """
    body = raw.encode("utf-8", "surrogatepass")
    if not may_hold_secret(body) and not vault.known:
        return raw, frozenset()
    # Parse by the most permissive rules: a secret is sealed even if its member occurs twice.
    parsed = parse_arguments(body, version=0)
    if not isinstance(parsed, Arguments):
        return raw, frozenset()
    form = vault.open_forms.get(
        opened_key(tool, compute_digest("arguments", canonical_outside(parsed.value)))
    )
    if form is not None:
        before = frozenset(found.kind for found in extract_references(orjson.loads(form)))
        return (_as_wrong(body, form.decode()), before) if before else (raw, before)
    kinds: set[str] = set()

    def seal(kind: str, secret: str, member: str) -> str:
        kinds.add(kind)
        return vault.seal(kind, secret, Place(source="call", tool=tool, member=member))

    value = with_sealed(parsed.value, seal)
    if opened_key(tool, compute_digest("arguments", canonical_outside(value))) not in vault.open_calls:
        value = with_known(value, dict(vault.known), seal)
    if not kinds:
        return raw, frozenset()
    return _as_wrong(body, canonical_outside(value).decode()), frozenset(kinds)


def _as_wrong(body: bytes, sealed: str) -> str:
    """Return the sealed arguments, with a repeated member repeated again.

    A repeated member in the original would have been refused, so the sealed form must be refused, too.
    """
    try:
        written = read_json(body)
        if isinstance(written, str):
            read_json(written)
    except MemberRepeated as repeated:
        name = orjson.dumps(repeated.name).decode()
        # A name that sealing removed must not appear again.
        name = name if name in sealed else UNNAMED
        return f"{{{name}:null,{name}:null,{sealed[1:]}"
    except orjson.JSONDecodeError:
        # Arguments nested too deep are refused for their depth, which sealing does not change.
        return sealed
    return sealed
