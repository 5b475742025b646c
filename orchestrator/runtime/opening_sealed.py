"""What is sealed in a call's arguments is opened here, and nowhere before (R-SEC-4)."""

from typing import Any

import orjson

from orchestrator.actions.hand import Hand
from orchestrator.core.errors import ContentMissing
from orchestrator.gateways.tools.arguments import Opened
from orchestrator.gateways.tools.http import CallFailed
from orchestrator.runtime.contents import body_of
from traces.core.canonical import canonical_outside
from traces.core.errors import NotCanonical, Unopenable
from traces.core.sealed import REFERENCE, opened_text, references, with_opened
from traces.sealing import Vault


class SealedOfRun:
    """The sealed values of the run in hand."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand

    def open(self, arguments: bytes) -> Opened:
        """The arguments with what their references stand for. Raises CallFailed where one cannot be opened:
        nothing was sent."""
        vault = self._hand.vault
        if vault is None or b"[sealed:" not in arguments:
            return Opened(arguments, {})
        value = orjson.loads(arguments)
        if not any(references(value)):
            return Opened(arguments, {})
        values: dict[str, str] = {}
        try:
            opened = canonical_outside(with_opened(value, self._opener(vault)))
            for text in _referring(value):
                values[opened_text(text, self._opener(vault))] = text
        except (Unopenable, ContentMissing, NotCanonical) as error:
            detail = f"a sealed value cannot be opened: {error}".encode()
            raise CallFailed("refused", sent=False, detail=detail) from error
        return Opened(opened, values)

    def _opener(self, vault: Vault) -> Any:
        return lambda digest: vault.open(body_of(self._hand, digest))


def _referring(value: Any) -> set[str]:
    """Every reference in the value, as it is written."""
    text = orjson.dumps(value).decode()
    return {found[0] for found in REFERENCE.finditer(text)}
