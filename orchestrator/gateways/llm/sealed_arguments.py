"""What is sensitive in the arguments that a model writes is sealed before anything of them is kept."""

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
    """The arguments of one call with references in place of what is sensitive, and the kinds of what was
    sealed. What holds nothing of that, or is no argument object and so is never sent, comes back as it is.

    A value that the vault knows is sensitive wherever it stands: it is sealed for that place, so that what is
    sent is what was written. Not so in a call that is open as it was written before that was known: the same
    words are the same call, and are sealed as they were.
    """
    body = raw.encode("utf-8", "surrogatepass")
    if not may_hold_secret(body) and not vault.known:
        return raw, frozenset()
    # By the rules that take most: a secret is sealed though its name stands there twice.
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
    """The sealed arguments; where a member stood twice in what was written, with that member twice again, so
    that they are refused as they would have been."""
    try:
        written = read_json(body)
        if isinstance(written, str):
            read_json(written)
    except MemberRepeated as repeated:
        name = orjson.dumps(repeated.name).decode()
        # A name that sealing took out is said no more.
        name = name if name in sealed else UNNAMED
        return f"{{{name}:null,{name}:null,{sealed[1:]}"
    except orjson.JSONDecodeError:
        # What is nested too deep is refused for its depth, which sealing leaves as it is.
        return sealed
    return sealed
