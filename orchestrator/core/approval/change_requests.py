"""Change requests: send a proposed call back to its author (R-APPR-3).

The module decides whether and how often that is possible, and what the next proposal shows of it. The
reviewer's text has no other effect: it grants nothing, it makes no value more trusted, and the next
proposal is checked and decided like any other call.
"""

from approvals.core.allowed_decisions import LONGEST_WORDS
from approvals.core.packet import Proposal
from orchestrator.core.common.frozen_model import with_entry, without_keys
from orchestrator.core.domain.run_events import GateDecided
from orchestrator.core.domain.run_state import Call, Result, ReturnedProposal, Review, RunState, SentBack
from orchestrator.core.workflow.edge_guards import MODEL, holds
from orchestrator.core.workflow.node_protocol import NodeContext, trace_event
from traces.core.canonical import encode_canonical
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CallAnsweredNot
from traces.core.integrity.chain import TraceEntry

OUTCOME = "revised"
STATUS = "sent_back"
VOICE = "a person who decides on this call"
LONGEST_ANSWER = 2_000
LONGEST_DRAFT = 8_000
NOTE = (
    "This is no refusal and no permission. Answer in the text of your reply, and ask for the call again, "
    "changed or as it was: it is decided anew. Or do without it."
)
DRAFT_NOTE = "This is no refusal and no permission. Write the draft anew: what is made of it is decided anew."


def step_of(call: Call) -> str:
    """Return the key under which the proposals of a call are counted: its author and the tool."""
    return f"{call.by} {call.tool}"


def proposal_of(view: NodeContext, call: Call, most: int) -> Proposal | None:
    """Return the place of a call among the proposals of its step, of which there are `most`.

    Returns None if the graph has no path back from this gate and nothing was sent back.
    """
    entry, back = view.state.sent_back.get(step_of(call)), _leads_back(view, call)
    if entry is None:
        return Proposal(number=1, most=most, returnable=most > 1) if back else None
    number = _compute_proposal_number(entry, call)
    told = Proposal(number=number, most=most, returnable=back and number < most)
    if not (answered := _select_answered_calls(entry, call)):
        return told
    view.desk.require(one.words for one in answered)
    former = _find_replaced_proposal(view, call)
    return told.model_copy(
        update={
            "previous": former.request if former is not None else "",
            "words": tuple(view.desk.text(one.words, LONGEST_WORDS) for one in answered),
            "answer": _read_model_text(view, call),
        }
    )


def previous_arguments(view: NodeContext, call: Call) -> str | None:
    """Return the arguments of the proposal that a call replaces; None if there is not exactly one."""
    former = _find_replaced_proposal(view, call)
    return None if former is None else view.desk.read(former.arguments).decode()


def may_be_sent_back(view: NodeContext, call: Call, most: int) -> bool:
    """Return whether a person's request for another proposal can be followed."""
    entry = view.state.sent_back.get(step_of(call))
    return _leads_back(view, call) and (1 if entry is None else _compute_proposal_number(entry, call)) < most


def sent_back(view: NodeContext, call: Call, event: GateDecided) -> tuple[RunState, TraceEntry]:
    """Return the state after a person sent the front call back with a comment, and the trace entry.

    The call gets its one result, which is not a refusal.
    """
    assert call.arguments is not None
    assert event.reason is not None
    state, step = view.state, step_of(call)
    one = ReturnedProposal(request=event.request, arguments=call.arguments, words=event.reason)
    entry = _with_returned_call(state.sent_back.get(step), call, one, state.counters.calls)
    words = view.desk.text(event.reason, LONGEST_WORDS)
    content = view.desk.put(encode_canonical({"status": STATUS, "from": VOICE, "words": words, "note": NOTE}))
    result = Result(
        call=call.id, provider_id=call.provider_id, tool=call.tool, status=STATUS, content=content
    )
    body = CallAnsweredNot(call=call.id, status=STATUS, detail=words[:300], result=content)
    review = Review(words=event.reason, draft=state.draft, by=call.by)
    after = _taken_off(state, call).evolve(
        gates=without_keys(state.gates, event.request),
        results=(*state.results, result),
        sent_back=with_entry(state.sent_back, step, entry),
        review=state.review if call.by == MODEL else review,
    )
    return after, trace_event(Phase.TOOL_ELIGIBILITY, body)


def with_settled_change_request(state: RunState, call: Call) -> RunState:
    """Return the state after a call was allowed or refused.

    If the call answers a change request of its step, that request is settled with its reply. Other calls of
    the same reply still count until then.
    """
    step = step_of(call)
    entry = state.sent_back.get(step)
    if entry is None or entry.settled or not _is_revised_call(entry, call):
        return state
    return state.evolve(sent_back=with_entry(state.sent_back, step, entry.evolve(settled=True)))


def asked_anew(view: NodeContext, state: RunState, by: str, tools: tuple[str, ...]) -> RunState:
    """Return the state once `by` requests calls of these tools; an empty tuple means no further call.

    Settled change requests are dropped. The comments of people are shown with the calls of one more reply;
    look-ups do not count as such calls.
    """
    own = {step: entry for step, entry in state.sent_back.items() if step.startswith(f"{by} ")}
    review = None if state.review is not None and state.review.by == by else state.review
    if not own:
        return state if review is state.review else state.evolve(review=review)
    acts = not tools or not all(_looks_up(view, tool) for tool in tools)
    kept = without_keys(state.sent_back, *own)
    for step, entry in own.items():
        if not entry.settled:
            shown = () if entry.over or not tools else entry.returned
            over = entry.over or acts or any(step == f"{by} {tool}" for tool in tools)
            kept = with_entry(kept, step, entry.evolve(returned=shown, over=over))
    return state.evolve(sent_back=kept, review=review)


def told_the_writer(view: NodeContext) -> str | None:
    """Return, as JSON, what the author of a draft is shown about a draft that was sent back.

    The JSON keeps the comment and the draft apart, so that neither can pass for the other. Returns None if
    no draft was sent back. Other models read the comment in the result of their call.
    """
    review = view.state.review
    if review is None:
        return None
    view.desk.require(digest for digest in (review.words, review.draft) if digest is not None)
    told = {
        "status": STATUS,
        "from": VOICE,
        "words": view.desk.text(review.words, LONGEST_WORDS),
        "draft": view.desk.text(review.draft, LONGEST_DRAFT) if review.draft is not None else "",
        "note": DRAFT_NOTE,
    }
    return encode_canonical(told).decode()


def _leads_back(view: NodeContext, call: Call) -> bool:
    """Return whether the graph has a path back: an edge whose guard holds once the call is off the queue."""
    edges = view.graph.edges.get(view.node.id, {}).get(OUTCOME, ())
    after = _taken_off(view.state, call)
    return any(edge.guard is None or holds(edge.guard, after) for edge in edges)


def _taken_off(state: RunState, call: Call) -> RunState:
    return state.evolve(queue=state.queue[1:], last_askers=(call.by,))


def _looks_up(view: NodeContext, tool: str) -> bool:
    spec = view.pins.by_name.get(tool)
    return spec is not None and not spec.is_mutating


def _with_returned_call(entry: SentBack | None, call: Call, one: ReturnedProposal, calls: int) -> SentBack:
    """Return the entry with one more call that was sent back; the first of a reply begins a round."""
    if entry is None:
        return SentBack(times=1, upto=calls, returned=(one,))
    if not _is_revised_call(entry, call):
        return entry.evolve(returned=(*entry.returned, one))
    return SentBack(
        times=entry.times + 1, upto=calls, returned=(one,), since=entry.upto, before=entry.returned
    )


def _is_revised_call(entry: SentBack, call: Call) -> bool:
    """Return whether a call was requested after the comment; calls of the same reply knew nothing of it."""
    return int(call.id[1:]) > entry.upto


def _compute_proposal_number(entry: SentBack, call: Call) -> int:
    """Return the number of the proposal; the calls of one reply share it."""
    return entry.times + _is_revised_call(entry, call)


def _select_answered_calls(entry: SentBack, call: Call) -> tuple[ReturnedProposal, ...]:
    """Return the calls that were sent back before this call was requested."""
    if _is_revised_call(entry, call):
        return entry.returned
    return entry.before if int(call.id[1:]) > entry.since else ()


def _find_replaced_proposal(view: NodeContext, call: Call) -> ReturnedProposal | None:
    """Return the one proposal that a call replaces.

    There is one only if a single proposal was sent back and the reply holds a single call of its step.
    """
    entry = view.state.sent_back.get(step_of(call))
    answered = _select_answered_calls(entry, call) if entry is not None else ()
    state, step = view.state, step_of(call)
    alone = all(one.id == call.id or step_of(one) != step for one in state.queue) and all(
        one.call == call.id or one.tool != call.tool for one in state.results
    )
    return answered[0] if len(answered) == 1 and alone else None


def _read_model_text(view: NodeContext, call: Call) -> str:
    """Return the text that the model wrote with the call: its own claim."""
    if call.by != MODEL or view.state.reply is None:
        return ""
    view.desk.require((view.state.reply,))
    return str(view.desk.json(view.state.reply).get("text") or "")[:LONGEST_ANSWER]
