"""Opening of sealed values in a call's arguments, here and nowhere earlier (R-SEC-4)."""

from contextlib import suppress
from typing import Any

import orjson

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.calls.open_effects import opened_key
from orchestrator.core.common.errors import ContentMissing
from orchestrator.tools.gateways.arguments import OpenedArguments
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.worker.effects.payload_loader import body_of
from traces.core.canonical import canonical_outside
from traces.core.canonical import compute_digest as digest_of
from traces.core.errors import NotCanonical, Unopenable
from traces.core.sealed_references import (
    REFERENCE,
    extract_references,
    iterate_secret_texts,
    opened_text,
    with_opened,
)
from traces.sealed_values import Vault


class RunArgumentOpener:
    """The sealed values of the claimed run."""

    def __init__(self, hand: ClaimedRun) -> None:
        self._hand = hand

    def open_arguments(self, arguments: bytes) -> OpenedArguments:
        """Return the arguments with their references replaced by the sealed values.

        Raises: CallFailed if a value cannot be opened; nothing was sent.
        """
        vault = self._hand.vault
        if vault is None:
            return OpenedArguments(arguments, {}, dict(self._hand.known))
        value = orjson.loads(arguments) if b"[sealed:" in arguments else None
        try:
            known = self._collect_known_values(vault)
            if not any(extract_references(value)):
                return OpenedArguments(arguments, {}, known)
            opened = canonical_outside(with_opened(value, self._opener(vault)))
            values = self._open_references(vault, value)
        except (Unopenable, ContentMissing, NotCanonical) as error:
            detail = f"a sealed value cannot be opened: {error}".encode()
            raise CallFailed("refused", sent=False, detail=detail) from error
        except ValueError as error:
            detail = b"a sealed value is not of the kind that its reference says"
            raise CallFailed("refused", sent=False, detail=detail) from error
        return OpenedArguments(opened, values, known)

    def _collect_known_values(self, vault: Vault) -> dict[str, str]:
        """Return the run's known values, and those referenced by the calls under way.

        A tool that reads a value back is compared with these values.
        """
        known = dict(self._hand.known)
        for call in self._hand.state.batch if known else ():
            body = body_of(self._hand, call.arguments) if call.arguments is not None else b""
            if b"[sealed:" in body:
                known |= self._open_references(vault, orjson.loads(body))
        return known

    def _open_references(self, vault: Vault, value: Any) -> dict[str, str]:
        """Return the values behind the references in `value`, each mapped to its reference."""
        return {
            text: reference
            for reference, kind in _extract_reference_kinds(value)
            for text in iterate_secret_texts(kind, opened_text(reference, self._opener(vault)))
        }

    def _opener(self, vault: Vault) -> Any:
        return lambda digest: vault.open_value(body_of(self._hand, digest))


def vault_of_reply(hand: ClaimedRun) -> Vault | None:
    """Return the vault that seals a model's reply, or None if the run has none.

    An open call is registered in the vault by its opened form, so that the call is sealed as before, whatever
    values became known since.
    """
    vault = hand.vault
    if vault is None:
        return None
    for opened in hand.state.opened.values():
        deed = hand.state.deeds.get(opened.call)
        if deed is None or deed.tool != opened.tool:
            continue
        with suppress(Unopenable, ContentMissing, NotCanonical, ValueError):
            form = body_of(hand, deed.arguments)
            value = with_opened(orjson.loads(form), lambda digest: vault.open_value(body_of(hand, digest)))
            vault.open_forms[opened_key(deed.tool, digest_of("arguments", canonical_outside(value)))] = form
    return vault


def _extract_reference_kinds(value: Any) -> set[tuple[str, str]]:
    """Return every reference in the value as written, with its kind."""
    text = orjson.dumps(value).decode()
    return {(found[0], found[1]) for found in REFERENCE.finditer(text)}
