"""Parse a person's form into a decision that the verb accepts (R-APPR-3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from approvals.actions import DecisionInput
from approvals.core.allowed_decisions import unfit_words
from approvals.core.argument_diff import Change, diff_json_values
from approvals.core.argument_display import TypedConfirmation, to_type
from approvals.core.errors import DecisionInvalid
from approvals.core.lifecycle import DecisionKind
from approvals.queries.request_detail import Card
from approvals.views.budget_extension_form import amounts_said
from tenancy.core.json_schema.form_parsing import ParsedForm, read_form
from traces.core.canonical import canonical_outside, compute_digest
from traces.core.errors import NotCanonical
from traces.core.sealed_references import extract_references

Said = Mapping[str, Any]
EDIT, ANSWER = "f", "a"
FREE_TEXT: Mapping[str, Any] = {"type": "string", "title": "Answer", "minLength": 1, "maxLength": 4_000}


class NotSaid(DecisionInvalid):
    """Something is still missing before this can be decided: {detail}"""

    code = "decision-invalid"


class FormFaulty(DecisionInvalid):
    """The form has fields that need another look: {detail}"""

    code = "decision-invalid"

    def __init__(self, read: ParsedForm) -> None:
        self.read = read
        super().__init__(detail=", ".join(sorted(read.faults)) or "the answer")


class NotReviewed(DecisionInvalid):
    """The change was not shown as it is now: look at the difference, then approve it."""

    code = "decision-invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedArguments:
    """Arguments other than those asked for, their differences and the text to type. `key` identifies them."""

    arguments: Any
    changes: tuple[Change, ...]
    typed: TypedConfirmation | None
    key: str


def word_of(card: Card, said: Said) -> DecisionInput:
    """Parse the decision that a form makes.

    Raises: NotSaid, FormFaulty, NotReviewed; all are DecisionInvalid (422).
    """
    kind = _parse_decision_kind(card, said)
    given: dict[str, Any] = {"kind": kind, "packet_digest": text_of(said, "digest")}
    if kind is DecisionKind.APPROVE:
        _check_typed(card.typed, said)
    elif kind is DecisionKind.EDIT:
        edited = agreed_edit(card, said) or edit_of(card, said)
        if text_of(said, "shown") != edited.key:
            raise NotReviewed
        _check_typed(edited.typed, said)
        given["arguments"] = edited.arguments
    elif kind is DecisionKind.ANSWER:
        given["answer"] = _parse_answer(card, said)
    elif kind is DecisionKind.EXTEND:
        given["amounts"] = amounts_said(said)
    elif kind is DecisionKind.REVISE:
        if fault := unfit_words(text_of(said, "reason").replace("\r\n", "\n")):
            raise NotSaid(detail=fault, pointer="/reason")
    elif kind in (DecisionKind.REJECT, DecisionKind.CANCEL) and not text_of(said, "reason").strip():
        raise NotSaid(detail="a reason, which the run and the agent are told", pointer="/reason")
    return DecisionInput(reason=text_of(said, "reason").replace("\r\n", "\n"), **given)


def text_of(said: Said, name: str) -> str:
    """Return a field's text, "" if there is none."""
    found = said.get(name)
    return found if isinstance(found, str) else ""


def edit_of(card: Card, said: Said) -> EditedArguments:
    """Parse the arguments that the edit form gives.

    Raises: FormFaulty, NotSaid.
    """
    if card.shape is None:
        raise NotSaid(detail="the schema of this call is not known, so it cannot be edited here")
    read = read_form(card.shape.input_schema, said, card.arguments, prefix=EDIT, secrets=card.secrets)
    # A sealed value is validated against the schema when it is unsealed.
    faults = {place: said for place, said in read.faults.items() if not _is_sealed(read.value, place)}
    if faults:
        raise FormFaulty(read._replace(faults=faults))
    return build_edit_proposal(card, read.value)


def _is_sealed(value: Any, pointer: str) -> bool:
    return any(found.pointer == pointer for found in extract_references(value))


def agreed_edit(card: Card, said: Said) -> EditedArguments | None:
    """Return the edit of another person that this form agrees to, None if there is none."""
    wanted = text_of(said, "agree")
    found = [one for one in card.edits if str(one.decision.id) == wanted]
    return build_edit_proposal(card, found[0].arguments) if found else None


def build_edit_proposal(card: Card, arguments: Any) -> EditedArguments:
    """Build an edit from arguments other than those that were asked for.

    Raises: NotSaid if the arguments have no canonical form.
    """
    request = card.request
    try:
        key = compute_digest("arguments", canonical_outside(arguments))
    except NotCanonical as error:
        raise NotSaid(detail=str(error)) from None
    typed = to_type(
        request.risk,
        has_amount=request.has_amount,
        amount=_extract_amount(card, arguments),
        arguments=arguments,
        tool=request.tool,
    )
    return EditedArguments(
        arguments=arguments, changes=diff_json_values(card.arguments, arguments), typed=typed, key=key
    )


def answer_schema(card: Card) -> Mapping[str, Any]:
    """Return the schema of an answer. Without a schema the answer is a text."""
    return card.request.answer_schema or FREE_TEXT


def _parse_decision_kind(card: Card, said: Said) -> DecisionKind:
    wanted = text_of(said, "decision")
    for kind in card.allowed_decisions:
        if kind.value == wanted:
            return kind
    raise NotSaid(detail="choose what to decide")


def _check_typed(typed: TypedConfirmation | None, said: Said) -> None:
    if typed is not None and not typed.right(text_of(said, "typed")):
        raise NotSaid(detail=f"type the {typed.what} exactly: {typed.text}", pointer="/typed")


def _parse_answer(card: Card, said: Said) -> Any:
    read = read_form(answer_schema(card), said, prefix=ANSWER)
    if read.faults:
        raise FormFaulty(read)
    return read.value


def _extract_amount(card: Card, arguments: Any) -> Decimal | None:
    """Return the amount in edited arguments if the tool declares where it is. The verb checks it again.

    If the tool declares no place, the request's own amount is returned.
    """
    found = arguments
    if card.shape is None or card.shape.amount is None:
        return card.request.amount
    for step in card.shape.amount.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    try:
        amount = Decimal(str(found))
    except ArithmeticError:
        return None
    return abs(amount) if amount.is_finite() else None


def row_id(text: str) -> UUID | None:
    """Parse an id from a form or an address, None if it is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        return None
