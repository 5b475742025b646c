"""The decision card: what a page or a region shows of one request, and after a word that was refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from approvals.core.arguments import without_secrets
from approvals.core.changes import Change, changes
from approvals.core.errors import RequestNotFound
from approvals.models import Request
from approvals.ports import Judged, check_edit
from approvals.queries.card import Card, Edit, card_of
from approvals.queries.people import Stands, decider_of
from approvals.views.granting import Grant, grants
from approvals.views.words import ANSWER, EDIT, Edited, answer_schema, edited
from tenancy.core.schema_form import Faults, SchemaForm, schema_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What happened to the word just said: `tone` error, stale, forbidden or info, a title and a text."""

    tone: str
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """An edit as it would be approved, and what the tool and the rules say to it."""

    edited: Edited
    judged: Judged | None

    @property
    def safe(self) -> Any:
        """The arguments with a mark where something looks like a secret."""
        return without_secrets(self.edited.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What `approvals/_card.html` draws.

    `agreeing` are edits of others that can be agreed to. `panel` is the part that stands open: edit or
    reject. `faults` are sentences by the name of a field. `changed` is what differs from the packet that the
    reader had before their eyes.
    """

    card: Card
    edit: SchemaForm | None = None
    answer: SchemaForm | None = None
    agreeing: tuple[tuple[Edit, Preview], ...] = ()
    preview: Preview | None = None
    notice: Notice | None = None
    panel: str = ""
    faults: Mapping[str, str] | None = None
    said: Mapping[str, Any] | None = None
    changed: tuple[Change, ...] = ()
    back: str = ""
    next: str = ""
    grants: tuple[Grant, ...] = ()


def request_of(request_id: UUID) -> Request:
    """The request. Inside the tenant's context. Raises RequestNotFound."""
    found = Request.objects.filter(id=request_id).first()
    if found is None:
        raise RequestNotFound
    return found


def shown_card(
    who: Stands,
    request_id: UUID,
    *,
    said: Mapping[str, Any] | None = None,
    form_faults: Faults | None = None,
    **more: Any,
) -> Shown:
    """The card for one reader, its forms filled in as `said`. Inside the tenant's context.

    Raises RequestNotFound.
    """
    card = card_of(request_of(request_id), decider_of(who))
    return Shown(
        card=card,
        edit=_edit_form(card, said, form_faults),
        answer=_answer_form(card, said, form_faults),
        agreeing=tuple((one, previewed(card, edited(card, one.arguments))) for one in card.edits),
        said=said,
        changed=_changed(card, said),
        grants=grants(card, said),
        **more,
    )


def previewed(card: Card, found: Edited) -> Preview:
    """An edit with the judgement of it: who must agree to it, or why it is refused."""
    request = card.request
    if not card.row.open or not found.changes:
        return Preview(edited=found, judged=None)
    judged = check_edit(request.tenant_id, request.run_id, request.call_id, found.arguments)
    return Preview(edited=found, judged=judged)


def _edit_form(card: Card, said: Mapping[str, Any] | None, faults: Faults | None) -> SchemaForm | None:
    if not card.editable or card.shape is None:
        return None
    schema = card.shape.input_schema
    sent = said if said is not None and said.get("decision") in ("edit", "review") else None
    return schema_form(
        schema, card.arguments, sent=sent, faults=faults if sent is not None else None, prefix=EDIT,
        secrets=card.secrets,
    )  # fmt: skip


def _answer_form(card: Card, said: Mapping[str, Any] | None, faults: Faults | None) -> SchemaForm | None:
    if card.request.kind != "clarification":
        return None
    return schema_form(answer_schema(card), sent=said, faults=faults, prefix=ANSWER)


def _changed(card: Card, said: Mapping[str, Any] | None) -> tuple[Change, ...]:
    """What differs between the arguments that were shown and those that are asked for now."""
    if said is None or said.get("digest") in (None, card.request.packet_digest):
        return ()
    try:
        seen = orjson.loads(said.get("seen", ""))
    except orjson.JSONDecodeError:
        return ()
    return changes(seen, card.safe)
