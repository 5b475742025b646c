"""Guard relaxation: changes that make a tool less guarded, which a second person must approve.

A server's statements about its own tool count only if they ask for more care.

Spec: R-TOOL-4, P4.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from orchestrator.core.domain.tool_category import CATEGORIES, remote_risk
from orchestrator.core.domain.tool_spec import Egress, RemoteLookup, Reversibility, Risk, ToolSpec
from orchestrator.core.policy.provenance.value_kinds import kind_of
from orchestrator.core.tools.approval_thresholds import approvers_of
from orchestrator.core.tools.remote_definition import Definition

APPROVALS = ("never", "by_risk", "always")
BACK = tuple(Reversibility)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READ = """check count describe fetch find get info list look lookup query read retrieve search show status
view"""
_CHANGE = """add apply approve buy cancel commit create delete deploy disable drop edit enable exec execute
grant insert invite kill merge modify move patch pay publish push put refund remove rename replace reply reset
restart revoke save schedule send submit transfer trigger update upload upsert write"""
# A verb as the first word, but often a noun in a later position: get_order, find_mail.
_EITHER = "book call charge close email mail message open order post run set start stop"
READING, CHANGING, EITHER = (frozenset(words.split()) for words in (_READ, _CHANGE, _EITHER))


def describe_relaxations(before: ToolSpec, after: ToolSpec) -> tuple[str, ...]:
    """Describe where `after` guards less than `before`, one sentence each; empty if nowhere."""
    return tuple(_iter_relaxations(before, after))


def describe_weaker_registration(definition: Definition, after: ToolSpec) -> tuple[str, ...]:
    """Describe where an admission guards less than the definition itself suggests, one sentence each."""
    found: list[str] = []
    suggested = suggested_risk(definition)
    if after.risk.rank < suggested.rank:
        found.append(
            f"It looks like {suggested.value}, by its name, its arguments or its server's word; it would be "
            f"{after.risk.value}."
        )
    return (*found, *below_category(after), *_named_less(definition.input_schema, after))


def below_category(after: ToolSpec) -> tuple[str, ...]:
    """Describe a risk class lower than the default of the tool's category, in at most one sentence.

    Spec: R-TOOL-2.
    """
    usual = remote_risk(after.category, after.reversibility)
    if usual is None or after.risk.rank >= usual.rank:
        return ()
    title = CATEGORIES[after.category].title
    return (f"Its category ({title}) makes it {usual.value}; it would be {after.risk.value}.",)


def describe_weaker_redeclaration(before: ToolSpec | None, after: ToolSpec) -> tuple[str, ...]:
    """Describe where a declaration of an HTTP tool guards less than the previous one, if there is any.

    A declaration with another request, origin, input schema or mutability, or without a previous declaration,
    is also compared with what its request itself suggests.
    """
    if before is None:
        return below_request(after)
    if _build_request_signature(before) == _build_request_signature(after):
        return describe_relaxations(before, after)
    return (*describe_relaxations(before, after), *_sent_elsewhere(before, after), *below_request(after))


def below_request(after: ToolSpec) -> tuple[str, ...]:
    """Describe where the declaration of an HTTP tool guards less than its request suggests."""
    request = after.remote.request if after.remote is not None else None
    found: list[str] = []
    if request is not None and request.method != "GET" and not after.risk.is_gated:
        found.append(
            f"It sends {request.method}, which changes something as a rule; it would be {after.risk.value}."
        )
    return (*found, *below_category(after), *_named_less(after.input_schema, after))


def suggested_risk(definition: Definition) -> Risk:
    """Return the strictest risk class that a definition's name, arguments and server hints suggest.

    The result is a suggestion, not an admission.
    """
    hints = definition.annotations
    if hints.get("destructiveHint") is True:
        return Risk.DESTRUCTIVE
    if hints.get("readOnlyHint") is False or not _is_reading_definition(definition):
        return Risk.NETWORK
    return Risk.READ_ONLY


def _is_reading_definition(definition: Definition) -> bool:
    words = [word.casefold() for word in _WORDS.findall(f"{definition.name} {definition.title}")]
    if not words or words[0] in EITHER or CHANGING & set(words) or not READING & set(words):
        return False
    kinds = {kind_of(f"/{name}", "1") for name in _list_property_names(definition.input_schema)}
    return "command" not in kinds and not {"account", "amount"} <= kinds


def _list_property_names(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return [str(name) for name in properties] if isinstance(properties, dict) else []


def _named_less(schema: dict[str, Any], after: ToolSpec) -> Iterator[str]:
    """Yield where an admission leaves out arguments that would be guarded by default."""
    if after.is_mutating:
        left = [name for name in _list_property_names(schema) if f"/{name}" not in after.sensitive]
        if left:
            yield f"Not sensitive would be: {', '.join(sorted(left))[:200]}."
    if not after.needs_gate and after.egress is not None and not after.egress.named:
        marked = after.egress.marked
        left = [
            n
            for n in _list_property_names(schema)
            if kind_of(f"/{n}", "x") == "url" and f"/{n}" not in marked
        ]
        if left:
            yield f"No address would be: {', '.join(sorted(left))[:200]}."


def _build_request_signature(spec: ToolSpec) -> tuple[Any, ...]:
    """Return the request, its origin, its arguments, and whether it changes anything."""
    remote = spec.remote
    here = (remote.request, remote.origin) if remote else ()
    return (*here, spec.input_schema, spec.is_mutating)


def _sent_elsewhere(before: ToolSpec, after: ToolSpec) -> Iterator[str]:
    was, now = before.remote, after.remote
    if was is None or now is None or was.request is None or now.request is None:
        return
    if was.origin != now.origin:
        yield f"It goes to {now.origin}, no longer to {was.origin}."
    if was.request.method != now.request.method and not after.needs_gate:
        yield f"It sends {now.request.method}, no longer {was.request.method}, and asks nobody."


def _iter_relaxations(before: ToolSpec, after: ToolSpec) -> Iterator[str]:
    yield from _guards_less(before, after)
    yield from _recovers_otherwise(before, after)
    yield from _proves_less(before, after)
    if _fewer_people(before, after):
        yield "Fewer people decide."


def _guards_less(before: ToolSpec, after: ToolSpec) -> Iterator[str]:
    if after.risk.rank < before.risk.rank:
        yield f"Its class falls from {before.risk.value} to {after.risk.value}."
    if BACK.index(after.reversibility) < BACK.index(before.reversibility):
        yield f"It counts as {after.reversibility.value}, no longer as {before.reversibility.value}."
    if APPROVALS.index(after.approval) < APPROVALS.index(before.approval):
        yield f"A person decides {after.approval}, no longer {before.approval}."
    if before.needs_gate and not after.needs_gate:
        yield "Its calls ask nobody any more."
    if lost := sorted(set(before.scopes) - set(after.scopes)):
        yield f"Its submitter needs no longer: {', '.join(lost)}."
    if lost := sorted(set(before.sensitive) - set(after.sensitive)):
        yield f"No longer sensitive: {', '.join(lost)[:200]}."
    if before.trust == "untrusted" and after.trust == "trusted":
        yield "Its results are trusted."
    if not after.needs_gate and _judges_less(before.egress, after.egress):
        yield "Fewer of its arguments are judged as addresses."


def _judges_less(before: Egress | None, after: Egress | None) -> bool:
    if before is None or before.argument:
        return False
    if after is None:
        return True
    return (before.named and not after.named) or bool(set(before.marked) - set(after.marked))


def _recovers_otherwise(before: ToolSpec, after: ToolSpec) -> Iterator[str]:
    """Yield changes by which a call is sent again, or counts as made, without asking a person (R-TOOL-9)."""
    if after.honours_keys and not before.honours_keys:
        yield "A call without an answer is sent again, trusting in its key."
    if after.lookup and not before.lookup:
        yield "What became of a call without an answer is looked up, and nobody is asked."
    elif after.lookup and _place_of_lookup(before) != _place_of_lookup(after):
        yield "What became of a call without an answer is looked up otherwise."
    if after.conclusive and not before.conclusive:
        yield "A call that its look-up does not find is sent again."
    if after.error_means_no_effect and not before.error_means_no_effect:
        yield "A call that answers with an error counts as not made, and may be sent again."


def _place_of_lookup(spec: ToolSpec) -> RemoteLookup | None:
    return spec.remote.lookup if spec.remote is not None else None


def _proves_less(before: ToolSpec, after: ToolSpec) -> Iterator[str]:
    was, now = before.verifier, after.verifier
    if was is not None and (
        now is None
        or not was.equal.items() <= now.equal.items()
        or was.read_back not in (None, now.read_back)
    ):
        yield "Its results are no longer verified as before."
    if before.compensation is not None and after.compensation != before.compensation:
        yield "It is no longer undone as before."


def _fewer_people(before: ToolSpec, after: ToolSpec) -> bool:
    """Return whether fewer people decide about any amount in any currency.

    Also true if a tool with several quorum steps takes its amount or currency from another argument.
    """
    steps = (*before.quorum, *after.quorum)
    if len(before.quorum) > 1 and (before.amount, before.currency) != (after.amount, after.currency):
        return True
    ends = sorted({step.up_to for step in steps if step.up_to is not None})
    amounts = (None, *ends, ends[-1] + 1 if ends else Decimal(1))
    currencies = (None, *sorted({step.currency for step in steps if step.currency is not None}))
    return any(
        approvers_of(after, amount, currency) < approvers_of(before, amount, currency)
        for amount in amounts
        for currency in currencies
    )
