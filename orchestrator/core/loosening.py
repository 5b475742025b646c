"""When a tool becomes less guarded, so that a second person has to agree (R-TOOL-4, P4).

What a server says of its own tool is believed where it asks for more care, and nowhere else.
"""

import re
from collections.abc import Iterator
from typing import Any

from orchestrator.core.origin.things import kind_of
from orchestrator.core.tool import Egress, Reversibility, Risk, ToolSpec
from orchestrator.core.tool_definition import Definition

APPROVALS = ("never", "by_risk", "always")
BACK = tuple(Reversibility)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READ = """check count describe fetch find get info list look lookup query read retrieve search show status
view"""
_CHANGE = """add apply approve buy cancel commit create delete deploy disable drop edit enable exec execute
grant insert invite kill merge modify move patch pay publish push put refund remove rename replace reply reset
restart revoke save schedule send submit transfer trigger update upload upsert write"""
# As a first word a verb, further on as likely a thing: get_order, find_mail.
_EITHER = "book call charge close email mail message open order post run set start stop"
READING, CHANGING, EITHER = (frozenset(words.split()) for words in (_READ, _CHANGE, _EITHER))


def weaker(before: ToolSpec, after: ToolSpec) -> tuple[str, ...]:
    """Where `after` guards less than `before`, a sentence each; none: nowhere."""
    return tuple(_weaker(before, after))


def below(definition: Definition, after: ToolSpec) -> tuple[str, ...]:
    """Where an admission guards less than what is admitted suggests by itself, a sentence each."""
    found: list[str] = []
    suggested = suggested_risk(definition)
    if after.risk.rank < suggested.rank:
        found.append(
            f"It looks like {suggested.value}, by its name, its arguments or its server's word; it would be "
            f"{after.risk.value}."
        )
    return (*found, *_named_less(definition.input_schema, after))


def below_request(after: ToolSpec) -> tuple[str, ...]:
    """Where the first declaration of an HTTP tool guards less than its request suggests."""
    request = after.remote.request if after.remote is not None else None
    found: list[str] = []
    if request is not None and request.method != "GET" and not after.mutating:
        found.append(f"It sends {request.method}, which changes something as a rule; it would be read_only.")
    return (*found, *_named_less(after.input_schema, after))


def suggested_risk(definition: Definition) -> Risk:
    """The class that a definition suggests: the strictest of what its name, its arguments and its server's
    hints say. Nothing of it is an admission."""
    hints = definition.annotations
    if hints.get("destructiveHint") is True:
        return Risk.DESTRUCTIVE
    if hints.get("readOnlyHint") is False or not _reads(definition):
        return Risk.NETWORK
    return Risk.READ_ONLY


def _reads(definition: Definition) -> bool:
    words = [word.casefold() for word in _WORDS.findall(f"{definition.name} {definition.title}")]
    if not words or words[0] in EITHER or CHANGING & set(words) or not READING & set(words):
        return False
    kinds = {kind_of(f"/{name}", "1") for name in _names(definition.input_schema)}
    return "command" not in kinds and not {"account", "amount"} <= kinds


def _names(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return [str(name) for name in properties] if isinstance(properties, dict) else []


def _named_less(schema: dict[str, Any], after: ToolSpec) -> Iterator[str]:
    """An admission that leaves out what would be guarded unless it said otherwise."""
    if after.mutating:
        left = [name for name in _names(schema) if f"/{name}" not in after.sensitive]
        if left:
            yield f"Not sensitive would be: {', '.join(sorted(left))[:200]}."
    elif after.egress is not None and not after.egress.named:
        marked = after.egress.marked
        left = [n for n in _names(schema) if kind_of(f"/{n}", "x") == "url" and f"/{n}" not in marked]
        if left:
            yield f"No address would be: {', '.join(sorted(left))[:200]}."


def _weaker(before: ToolSpec, after: ToolSpec) -> Iterator[str]:
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
    if not after.mutating and _judges_less(before.egress, after.egress):
        yield "Fewer of its arguments are judged as addresses."


def _judges_less(before: Egress | None, after: Egress | None) -> bool:
    if before is None or before.argument:
        return False
    if after is None:
        return True
    return (before.named and not after.named) or bool(set(before.marked) - set(after.marked))
