"""What is sensitive in the arguments that a model writes is sealed before anything of them is kept."""

from orchestrator.core.parsing import Arguments, parse
from traces.core.canonical import canonical_outside
from traces.core.redaction import may_hold_secret
from traces.core.sealed import Place, with_known, with_sealed
from traces.sealing import Vault


def sealed_arguments(raw: str, tool: str, vault: Vault) -> tuple[str, frozenset[str]]:
    """The arguments of one call with references in place of what is sensitive, and the kinds of what was
    sealed. What holds nothing of that, or is no argument object and so is never sent, comes back as it is.

    A value that the vault knows is sensitive wherever it stands: it is sealed for that place, so that what is
    sent is what was written.
    """
    body = raw.encode("utf-8", "surrogatepass")
    if not may_hold_secret(body) and not vault.known:
        return raw, frozenset()
    # By the rules that take most: a secret is sealed though its name stands there twice.
    parsed = parse(body, version=0)
    if not isinstance(parsed, Arguments):
        return raw, frozenset()
    kinds: set[str] = set()

    def seal(kind: str, secret: str, member: str) -> str:
        kinds.add(kind)
        return vault.seal(kind, secret, Place(source="call", tool=tool, member=member))

    value = with_known(with_sealed(parsed.value, seal), dict(vault.known), seal)
    return (canonical_outside(value).decode() if kinds else raw), frozenset(kinds)
