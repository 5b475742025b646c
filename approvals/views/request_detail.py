"""The decision card: one request on a page or in a region, also after a decision was refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from approvals.core.allowed_decisions import LONGEST_WORDS
from approvals.core.argument_diff import Change, diff_json_values
from approvals.core.argument_display import without_secrets
from approvals.core.errors import RequestNotFound
from approvals.models import Request
from approvals.ports import EditJudgement, check_edit
from approvals.queries.assignment import AssignmentPanel, desk_of
from approvals.queries.people import AuthorizedPrincipal, decider_of
from approvals.queries.request_detail import Card, Edit, card_of
from approvals.queries.undo import may_undo
from approvals.views.budget_extension_form import Grant, build_extension_fields
from approvals.views.decision_form import ANSWER, EDIT, EditedArguments, answer_schema, build_edit_proposal
from tenancy.core.json_schema.form import Faults, SchemaForm, schema_form
from tenancy.core.roles import Scope
from tenancy.web.page_auth import PageRequest

TIMES: Final = (
    ("15", "15 minutes"), ("60", "1 hour"), ("240", "4 hours"), ("morning", "until tomorrow, 9:00"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The result of the last decision, with a title and a text. `tone` is error, stale, forbidden or info."""

    tone: str
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """An edit as it would be approved, with the verdict of the tool and the rules.

    `agreed` people have already agreed to the edit.
    """

    edited: EditedArguments
    judged: EditJudgement | None
    agreed: int = 0

    @property
    def remaining_approvals(self) -> int:
        """Return how many more people must agree to the edit."""
        return max(0, self.judged.quorum - self.agreed) if self.judged is not None else 0

    @property
    def missing_after(self) -> int:
        """Return how many more people must agree to the edit after this reader has."""
        return max(0, self.remaining_approvals - 1)

    @property
    def safe(self) -> Any:
        """Return the arguments with a mark in place of anything that looks like a secret."""
        return without_secrets(self.edited.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardContext:
    """The context that `approvals/_card.html` renders.

    `agreeing` are edits of others that the reader can agree to. `panel` is the open part: edit, revise or
    reject. `faults` are sentences by field name. `changed` is the difference from the packet that the reader
    had seen. `desk` holds the actions other than deciding. `reader` is the principal that looks, `owner` the
    person behind it. `manages` is whether the reader may assign requests to others. `theirs` is whether the
    reader may undo the last deferred approval.
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
    desk: AssignmentPanel | None = None
    reader: UUID | None = None
    manages: bool = False
    owner: UUID | None = None
    theirs: bool = False

    @property
    def undoable(self) -> bool:
        """Return whether this reader may undo the pending approval."""
        return self.theirs and self.card.row.stands and not self.is_due

    @property
    def is_own(self) -> bool:
        """Return whether the deferred approval is this reader's."""
        kept = self.card.row.deferred
        return kept is not None and kept.owner == self.owner

    @property
    def is_due(self) -> bool:
        """Return whether the deferral is due: the approval takes effect at any moment."""
        kept = self.card.row.deferred
        return self.card.row.stands and kept is not None and self.card.now >= kept.effective_at

    @property
    def longest_words(self) -> int:
        """Return the maximum length of the text that sends a call back."""
        return LONGEST_WORDS

    @property
    def times(self) -> tuple[tuple[str, str], ...]:
        """Return the choices for snoozing: each form value with its label."""
        return TIMES

    @property
    def agreed_edit(self) -> UUID | None:
        """Return the edit of another person that the form agreed to, by the id of that person's decision."""
        wanted = str(self.said.get("agree", "")) if self.said is not None else ""
        return next((one.decision.id for one, _ in self.agreeing if str(one.decision.id) == wanted), None)


def request_of(request_id: UUID) -> Request:
    """Return the request. Call in the tenant's context.

    Raises: RequestNotFound.
    """
    found = Request.objects.filter(id=request_id).first()
    if found is None:
        raise RequestNotFound
    return found


def shown_card(
    who: AuthorizedPrincipal,
    request_id: UUID,
    *,
    said: Mapping[str, Any] | None = None,
    form_faults: Faults | None = None,
    **more: Any,
) -> CardContext:
    """Build the card for one reader, with its forms filled in from `said`. Call in the tenant's context.

    Raises: RequestNotFound.
    """
    card = card_of(request_of(request_id), decider_of(who))
    return CardContext(
        card=card,
        desk=desk_of(card.request, who.owner, card.now),
        reader=who.principal,
        owner=who.owner,
        manages=Scope.ADMIN in who.scopes,
        theirs=card.row.deferred is not None and may_undo(who, card.row.deferred),
        edit=_edit_form(card, said, form_faults),
        answer=_answer_form(card, said, form_faults),
        agreeing=tuple(
            (one, build_edit_preview(card, build_edit_proposal(card, one.arguments))) for one in card.edits
        ),
        said=said,
        changed=_diff_seen_arguments(card, said),
        grants=build_extension_fields(card, said),
        **more,
    )


def build_edit_preview(card: Card, found: EditedArguments) -> Preview:
    """Build the preview of an edit with its verdict.

    The verdict holds how many people must agree, or why the edit is refused.
    """
    request = card.request
    if not card.row.is_open or not found.changes:
        return Preview(edited=found, judged=None)
    judged = check_edit(request.tenant_id, request.run_id, request.call_id, found.arguments)
    count = next((one.agreed for one in card.edits if one.arguments == found.arguments), 0)
    return Preview(edited=found, judged=judged, agreed=count)


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


def _diff_seen_arguments(card: Card, said: Mapping[str, Any] | None) -> tuple[Change, ...]:
    """Compare the arguments that were shown with those that are asked for now."""
    if said is None or said.get("digest") in (None, card.request.packet_digest):
        return ()
    try:
        seen = orjson.loads(said.get("seen", ""))
    except orjson.JSONDecodeError:
        return ()
    return diff_json_values(seen, card.safe)


def card_answer(request: PageRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """Render the card: in place of the card on the asking page, or on a page of its own."""
    if request.headers.get("HX-Request") is None:
        return render(request, "approvals/approval.html", context, status=status)
    answer = render(request, "approvals/_card.html", context, status=status)
    answer["Interlock-Card"] = str(context["shown"].card.request.id)
    return answer


def go_on(request: PageRequest, where: str) -> HttpResponse:
    """Redirect the browser. A request made by script gets a header that redirects the page."""
    if request.headers.get("HX-Request") is None:
        return HttpResponseRedirect(where)
    return HttpResponse(headers={"HX-Redirect": where})


def way_of(request: PageRequest) -> dict[str, Any]:
    """Return the page the form came from and the next request."""
    return {"back": way_back(request), "next": _read_form_field(request, "next")}


def _read_form_field(request: PageRequest, name: str) -> str:
    """Return a field of the form, or of the query if a page reloads its card."""
    return str((request.POST if request.method == "POST" else request.GET).get(name, ""))


def way_back(request: PageRequest) -> str:
    """Return the page the form came from if it is on this site, otherwise ""."""
    wanted = _read_form_field(request, "back")
    host = {request.get_host()}
    return wanted if url_has_allowed_host_and_scheme(wanted, host, require_https=request.is_secure()) else ""
