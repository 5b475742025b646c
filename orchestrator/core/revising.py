"""Sending a proposed call back to whoever proposed it (R-APPR-3): whether that can be, how often, and what
the next proposal shows of it.

What the person says is words and nothing more: no grant comes of them, no value is better for standing in
them, and what is proposed anew is checked and decided like any other call.
"""

from approvals.core.packet import Proposal
from orchestrator.core.events import GateDecided
from orchestrator.core.guards import MODEL, holds
from orchestrator.core.state import Call, Result, SentBack, State
from orchestrator.core.step import View, say
from orchestrator.core.value import with_entry, without
from traces.core.canonical import canonical
from traces.core.chain import Said
from traces.core.events import CallAnsweredNot
from traces.core.phases import Phase

SINCE = 7
OUTCOME = "revised"
STATUS = "sent_back"
LONGEST_WORDS = 2_000
LONGEST_ANSWER = 2_000
LONGEST_DRAFT = 8_000
NOTE = (
    "This is no refusal and no permission. Answer in the text of your reply, and ask for the call again, "
    "changed or as it was: it is decided anew. Or do without it."
)


def step_of(call: Call) -> str:
    """What the proposals of a call are counted under: who asks for it, and the tool."""
    return f"{call.by} {call.tool}"


def proposal_of(view: View, call: Call, most: int) -> Proposal | None:
    """How a call stands among the proposals of its step, of which there are `most`; None where nothing leads
    back from this gate and nothing came back."""
    before, back = view.state.sent_back.get(step_of(call)), _leads_back(view, call)
    if before is None:
        return Proposal(number=1, most=most, returnable=most > 1) if back else None
    number = before.times + _answers(before, call)
    told = Proposal(number=number, most=most, returnable=back and number < most)
    if not _answers(before, call):
        return told
    needed = (before.words, before.arguments, view.state.reply)
    view.desk.require(digest for digest in needed if digest is not None)
    words, answer = _words(view, before), _answer(view, call)
    return told.model_copy(update={"previous": before.request, "words": words, "answer": answer})


def previous_arguments(view: View, call: Call) -> str | None:
    """The arguments of the proposal that a call takes the place of; None where it takes no other's."""
    before = view.state.sent_back.get(step_of(call))
    if before is None or not _answers(before, call):
        return None
    return view.desk.read(before.arguments).decode()


def may_be_sent_back(view: View, call: Call, most: int) -> bool:
    """Whether a person's wish to have it proposed anew can be followed."""
    proposal = proposal_of(view, call, most)
    return proposal is not None and proposal.returnable


def sent_back(view: View, call: Call, event: GateDecided) -> tuple[State, Said]:
    """The state once a person sent the front call back with their words, and what is said of it. The call has
    its one result, which is no refusal."""
    assert call.arguments is not None
    state, step = view.state, step_of(call)
    before = state.sent_back.get(step)
    entry = SentBack(
        times=1 if before is None else before.times + _answers(before, call),
        request=event.request,
        arguments=call.arguments,
        words=event.reason,
        upto=state.counters.calls,
    )
    words = _words(view, entry)
    told = {"status": STATUS, "from": "a person who decides on this call", "words": words, "note": NOTE}
    content = view.desk.put(canonical(told))
    result = Result(
        call=call.id, provider_id=call.provider_id, tool=call.tool, status=STATUS, content=content
    )
    body = CallAnsweredNot(call=call.id, status=STATUS, detail=words[:300], result=content)
    after = _taken_off(state, call).evolve(
        gates=without(state.gates, event.request),
        results=(*state.results, result),
        sent_back=with_entry(state.sent_back, step, entry),
        review=state.review if call.by == MODEL else event.reason,
    )
    return after, say(Phase.TOOL_ELIGIBILITY, body)


def settled(state: State, call: Call) -> State:
    """The state once people said yes or no to a step: what was sent back of it is over."""
    step = step_of(call)
    return state.evolve(sent_back=without(state.sent_back, step)) if step in state.sent_back else state


def told_the_writer(view: View) -> str | None:
    """What whoever writes is told of a draft that came back; None where none did. Other models read it in the
    result of their call."""
    state = view.state
    if state.review is None:
        return None
    view.desk.require(digest for digest in (state.review, state.draft) if digest is not None)
    words = view.desk.text(state.review, LONGEST_WORDS)
    draft = view.desk.text(state.draft, LONGEST_DRAFT) if state.draft is not None else ""
    return f"SENT BACK BY A PERSON\n{words}\n\nYOUR DRAFT\n{draft}\n\nWrite it anew."


def _leads_back(view: View, call: Call) -> bool:
    """Whether the graph has a way for it: an edge whose guard holds once the call is off the queue."""
    if view.manifest.core_version < SINCE:
        return False
    edges = view.graph.edges.get(view.node.id, {}).get(OUTCOME, ())
    after = _taken_off(view.state, call)
    return any(edge.guard is None or holds(edge.guard, after) for edge in edges)


def _taken_off(state: State, call: Call) -> State:
    return state.evolve(queue=state.queue[1:], last_askers=(call.by,))


def _answers(before: SentBack, call: Call) -> bool:
    """Whether a call was asked for after the words were said; one of the same reply knew nothing of them."""
    return int(call.id[1:]) > before.upto


def _words(view: View, entry: SentBack) -> str:
    return view.desk.text(entry.words, LONGEST_WORDS) if entry.words is not None else ""


def _answer(view: View, call: Call) -> str:
    """What the model wrote beside the call: its own claim."""
    if call.by != MODEL or view.state.reply is None:
        return ""
    return str(view.desk.json(view.state.reply).get("text") or "")[:LONGEST_ANSWER]
