"""Verify that requests, decisions, deferred approvals and grant uses are unchanged.

The rows are compared with each other and with the trace events recorded at the time. The trace is read first:
the rows that an event names were committed before or with the event, so a run under way shows no fault.

Spec: approvals' share of R-TRACE-3, A1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel

from approvals.core.digests import COLUMNS, decision_digest
from approvals.core.lifecycle import AGREEING
from approvals.core.packet import packet_digest
from approvals.core.quorum import count_agreeing_people
from approvals.core.undo import Fate
from approvals.models import Decision, Deferral, GrantUse, Request
from approvals.queries import decisions_by_request, uses_of, votes_of
from traces.core.events.trace_events import ApprovalDecided, ApprovalRequested
from traces.models import Event, Record
from traces.verification import VerificationFault, register_check

SPOKEN: Mapping[str, type[ApprovalRequested | ApprovalDecided]] = {
    "approval_requested": ApprovalRequested,
    "approval_decided": ApprovalDecided,
}
GRANT = "grant:"
Said = ApprovalRequested | ApprovalDecided


def check_run(run_id: UUID) -> list[VerificationFault]:
    """List every fault of a run's requests, decisions, deferrals and grant uses. Call in the tenant's
    context.
    """
    spoken, used = _load_traced_requests(run_id), _load_used_grants(run_id)
    requests = {
        str(found.id): found for found in Request.objects.filter(run_id=run_id).order_by("created_at", "id")
    }
    ids = [found.id for found in requests.values()]
    # Read before the decisions: a deferral that takes effect in between is pending here, which is no fault.
    yeses = list(Deferral.objects.filter(request_id__in=ids).order_by("at", "id"))
    decisions, uses = decisions_by_request(ids), uses_of(ids)
    digests = {d.digest: str(d.request_id) for of_one in decisions.values() for d in of_one}
    faults = [
        fault
        for found in requests.values()
        for fault in _of_request(found, decisions[found.id], uses.get(found.id))
    ]
    for kept in yeses:
        faults += _kept_back(requests[str(kept.request_id)], kept, decisions[kept.request_id])
    faults += [fault for said in spoken for fault in _verify_traced_request(said, requests, digests)]
    return [*faults, *_verify_used_grants(used, uses)]


def _load_traced_requests(run_id: UUID) -> list[Said]:
    """Load the trace events about requests. An unreadable body is skipped: the trace's check reports it."""
    said: list[Said] = []
    events = Event.objects.filter(run_id=run_id, kind__in=SPOKEN).order_by("seq")
    for kind, body in events.values_list("kind", "body"):
        with suppress(ValueError):
            said.append(SPOKEN[kind].model_validate_json(bytes(body)))
    return said


def _load_used_grants(run_id: UUID) -> dict[UUID, str]:
    """Load the grants that records bind as used, each with the action that it was used for."""
    bodies = Record.objects.filter(run_id=run_id).order_by("number").values_list("body", flat=True)
    used: dict[UUID, str] = {}
    for body in map(bytes, bodies.iterator()):
        if f'"{GRANT}'.encode() in body:
            with suppress(ValueError):
                used |= _Binding.model_validate_json(body).list_used_grants()
    return used


class _Binding(BaseModel):
    """The part of a record that binds rows of its commit."""

    binds: dict[str, str]

    def list_used_grants(self) -> dict[UUID, str]:
        """Return the bound grants by request, each with its action."""
        return {
            UUID(name.removeprefix(GRANT)): action
            for name, action in self.binds.items()
            if name.startswith(GRANT)
        }


def _of_request(
    request: Request, decisions: Sequence[Decision], use: GrantUse | None
) -> Iterator[VerificationFault]:
    yield from _verify_packet(request)
    previous = request.packet_digest
    for decision in decisions:
        yield from _verify_decision(request, decision, previous)
        previous = decision.digest
    if request.status == "decided":
        yield from _verify_outcome(request, decisions)
    if use is not None:
        yield from _verify_grant_use(request, use)


def _verify_packet(request: Request) -> Iterator[VerificationFault]:
    """Check that the packet matches its digest and that the columns copied from the packet still match."""
    body = bytes(request.packet)
    if packet_digest(body) != request.packet_digest:
        yield _make_fault("Request", request.id, "packet", "it does not fit its digest")
        return
    shown = orjson.loads(body)
    for column, here in _SHOWN.items():
        if (stands := here(request)) != _of_packet(shown, column):
            yield _make_fault("Request", request.id, column, f"it says {stands}, the packet says otherwise")


_SHOWN: Mapping[str, Callable[[Request], Any]] = {
    "id": lambda request: str(request.id),
    "run_id": lambda request: str(request.run_id),
    "kind": lambda request: request.kind,
    "action_digest": lambda request: request.action_digest,
    "tool": lambda request: request.tool,
    "queue": lambda request: request.queue,
    "quorum": lambda request: request.quorum,
    "risk": lambda request: request.risk,
}


def _of_packet(shown: Mapping[str, Any], column: str) -> Any:
    tool = shown["tool"] or {"name": "", "risk": "read_only"}
    elsewhere = {
        "id": shown["request"], "run_id": shown["run"], "tool": tool["name"], "risk": tool["risk"],
        "queue": shown["who"]["queue"], "quorum": shown["who"]["quorum"],
    }  # fmt: skip
    return elsewhere[column] if column in elsewhere else shown[column]


def _verify_decision(request: Request, decision: Decision, previous: str) -> Iterator[VerificationFault]:
    if decision_digest({name: getattr(decision, name) for name in COLUMNS}) != decision.digest:
        yield _make_fault("Decision", decision.id, "digest", "its content is not what was hashed")
    if decision.packet_digest != request.packet_digest:
        yield _make_fault("Decision", decision.id, "packet_digest", "it was made on another packet")
    if decision.previous != previous:
        yield _make_fault(
            "Decision", decision.id, "previous", "the word said before it is missing or another"
        )


def _verify_outcome(request: Request, decisions: Sequence[Decision]) -> Iterator[VerificationFault]:
    """Check that the last decision is the outcome and that an approval has enough people behind it."""
    last = decisions[-1] if decisions else None
    if last is None or last.kind != request.outcome:
        yield _make_fault(
            "Decision", request.id, "request_id", "the request is decided, its decision is missing"
        )
        return
    if last.kind not in AGREEING:
        return
    votes = votes_of(decisions)
    needed = request.quorum if last.arguments is None else last.quorum or 1
    if count_agreeing_people(votes, _to_optional_bytes(last.arguments)) < needed:
        yield _make_fault("Decision", request.id, "request_id", "fewer people agreed than were needed")
    if last.arguments is None and request.granted_action != request.action_digest:
        yield _make_fault("Request", request.id, "granted_action", "it grants another action than was asked")


def _verify_grant_use(request: Request, use: GrantUse) -> Iterator[VerificationFault]:
    if request.outcome not in AGREEING:
        yield _make_fault("GrantUse", use.id, "id", "nothing was granted")
    elif use.action_digest != request.granted_action:
        yield _make_fault(
            "GrantUse", use.id, "action_digest", "it was used for another action than was granted"
        )


def _kept_back(
    request: Request, kept: Deferral, decisions: Sequence[Decision]
) -> Iterator[VerificationFault]:
    """Check a deferral against its request and, if it took effect, against the person's decision.

    A deferral has no digest of its own. A deferral that took effect must equal the decision of the same
    person, made at the time the deferral ended; the decision is hashed.
    """
    said = next((decision for decision in decisions if decision.owner == kept.owner), None)
    there = said is not None and said.at == kept.ended_at
    if kept.packet_digest != request.packet_digest or kept.run_id != request.run_id:
        yield _make_fault("Deferral", kept.id, "packet_digest", "it was said to another request")
    if not kept.at < kept.effective_at <= request.expires_at:
        yield _make_fault("Deferral", kept.id, "effective_at", "it could not take effect then")
    if (kept.fate == Fate.TAKEN) is not there:
        yield _make_fault(
            "Deferral", kept.id, "fate", "it took effect and is no decision, or the other way round"
        )
    elif said is not None and there:
        if kept.effective_at > said.at:
            yield _make_fault("Deferral", kept.id, "effective_at", "it was decided before its time")
        for column, here in _KEPT.items():
            if here(kept) != here(said):
                yield _make_fault("Deferral", kept.id, column, "its decision says otherwise")


_KEPT: Mapping[str, Callable[[Deferral | Decision], Any]] = {
    "principal": lambda one: one.principal,
    "kind": lambda one: one.kind,
    "reason": lambda one: one.reason,
    "arguments": lambda one: _to_optional_bytes(one.arguments),
}


def _verify_traced_request(
    said: Said, requests: Mapping[str, Request], digests: Mapping[str, str]
) -> Iterator[VerificationFault]:
    """Report a traced request or decision that the tables no longer hold, or hold differently."""
    key, found = said.request, requests.get(said.request)
    if found is None:
        yield _make_fault("Request", key, "id", "the trace speaks of it and it is not there")
    elif said.packet_digest != found.packet_digest:
        yield _make_fault("Request", key, "packet_digest", "the trace speaks of another packet")
    elif isinstance(said, ApprovalDecided) and digests.get(said.decision_digest) != key:
        yield _make_fault("Decision", key, "digest", "the trace speaks of a decision that is not there")


def _verify_used_grants(
    used: Mapping[UUID, str], uses: Mapping[UUID, GrantUse]
) -> Iterator[VerificationFault]:
    """Report each grant that a record binds as used and the table lacks, or holds for another action."""
    for request, action in used.items():
        use = uses.get(request)
        if use is None or use.action_digest != action:
            yield _make_fault("GrantUse", request, "id", "the trace binds a use that is not there")


def _to_optional_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _make_fault(where: str, key: UUID | str, column: str, sentence: str) -> VerificationFault:
    return VerificationFault(where=f"{where} {key}", number=0, column=column, sentence=sentence)


register_check("approvals", check_run)
