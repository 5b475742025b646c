"""Revealing a sealed value to somebody who decides on it; each time is on record (R-SEC-4, R-APPR-2)."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction

from approvals.core.assignment import AssignmentAction
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours, RequestNotFound
from approvals.core.lifecycle import RequestStatus
from approvals.core.policy import explain_decision_refusal
from approvals.models import Handling, Request
from approvals.queries.people import asked_of, decider_of
from tenancy.actions import write_audit_entry
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.statement_batch import Batch
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.queries import standing_of
from traces.actions import store_payloads
from traces.core.errors import Unopenable
from traces.core.sealed_references import extract_references, holds_reference, opened_text
from traces.live import publish_change_hint
from traces.queries import load_payloads, vault_of


def reveal_sealed_value(tenant_id: UUID, request_id: UUID, principal_id: UUID, pointer: str) -> str:
    """The text at a place of the arguments, with what is sealed in it opened. Outermost verb: owns the
    transaction, in which the request's record and the audit log say who saw it.

    Whoever may decide the request and holds the scope `reveal`, while it waits. Raises
    RequestNotFound (404), NotYours (403), AlreadyDecided (409), Unopenable (410: erased), DecisionInvalid
    (422: nothing is sealed there).
    """
    with tenant_transaction(tenant_id):
        request = Request.objects.filter(id=request_id).first()
        who = standing_of(tenant_id, principal_id)
        if request is None or who is None:
            raise RequestNotFound
        asked = asked_of(request).model_copy(update={"sealed": True})
        if (why := explain_decision_refusal(asked, decider_of(who))) is not None:
            raise NotYours(reason=why.sentence, rule=why.rule.value)
        if request.status != RequestStatus.PENDING:
            raise AlreadyDecided(status=request.status)
        text = _unseal_text_at(tenant_id, request, pointer)
        Handling.objects.create(
            id=fresh_id(),
            tenant_id=tenant_id,
            request=request,
            principal=who.principal,
            owner=who.owner,
            kind=AssignmentAction.REVEAL.value,
            text=f"Revealed the value at {pointer[:300]}",
            at=database_now(),
        )
        write_audit_entry(
            tenant_id, who.principal, verb="approval.reveal", object=f"request:{request.id}",
            before={}, after={"pointer": pointer[:300], "run": str(request.run_id)},
        )  # fmt: skip
        transaction.on_commit(partial(publish_change_hint, tenant_id, request.run_id))
        return text


def keep_sealed(tenant_id: UUID, run_id: UUID, sealed: Mapping[str, bytes]) -> None:
    """Keep the payloads of values that were sealed in an edit, with the run's other content. Joins the
    transaction of the decision."""
    if not sealed:
        return
    with Batch(raw_cursor()) as batch:
        store_payloads(tenant_id, run_id, sealed, batch=batch)


def _unseal_text_at(tenant_id: UUID, request: Request, pointer: str) -> str:
    text = _text_at(orjson.loads(bytes(request.packet)).get("arguments") or "null", pointer)
    vault = vault_of(tenant_id, request.run_id)
    if vault is None:
        raise Unopenable(detail="it was erased")

    def open_one(digest: str) -> str:
        held = load_payloads(request.run_id, (digest,))
        if digest not in held:
            raise Unopenable(detail="it was erased")
        return vault.open_value(held[digest])

    return opened_text(text, open_one)


def _text_at(arguments: str, pointer: str) -> str:
    """Return the text at the pointer; before it the member's name where a reference stands in that.

    Raises: DecisionInvalid where nothing is sealed in it.
    """
    value: Any = orjson.loads(arguments)
    found = {one.pointer for one in extract_references(value)}
    if pointer not in found:
        raise DecisionInvalid(detail="there is no sealed value at this place", pointer="/pointer")
    name = ""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    if not holds_reference(name):
        # Only a text or a name can hold a reference.
        return str(value)
    # What is nested below the name has places of its own.
    return name if isinstance(value, dict | list) else f"{name}: {_to_plain_text(value)}"


def _to_plain_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
