"""update_state: verified results become facts, verified failures error states (phase 11, rung 5)."""

from typing import ClassVar

from orchestrator.core.calls.open_effects import action_key, open_of, record_open_effect, settle_open_effect
from orchestrator.core.common.frozen_model import Hex, with_entry
from orchestrator.core.domain.run_state import Call, Counters, Fact, Failure, Result, RunState, UnreadAnswer
from orchestrator.core.workflow.goal_inputs import small_values
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.canonical import encode_canonical
from traces.core.events.phases import Phase
from traces.core.events.trace_events import FactCommitted, FailureCommitted
from traces.core.integrity.chain import TraceEntry

SHOWN_FAILURES = 8
GOOD = ("verified", "observed_only")
MAY_HAVE_HAPPENED = "it may have happened; the same call is sent again only where that cannot do it twice"


class UpdateState(PlainNode):
    kind: ClassVar[str] = "update_state"
    outcomes: ClassVar[tuple[str, ...]] = ("committed",)
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.STATE_UPDATE)
    artifact: ClassVar[str] = "updated task state"

    def enter(self, view: NodeContext) -> NodeResult:
        """Commit every call of the batch and give each its one result."""
        view.desk.require(c.observation for c in view.state.batch if c.observation is not None)
        state = view.state
        said: list[TraceEntry] = []
        for call in view.state.batch:
            committed = _commit_fact if call.verdict in GOOD else _commit_failure
            state, words = committed(view, state, call)
            said.extend(words)
        learnt = len(state.facts) > len(view.state.facts) or _has_changed_facts(view.state, state)
        done = state.evolve(
            batch=(),
            last_askers=tuple(call.by for call in view.state.batch),
            counters=_with_counted_errors(state.counters, view.state.batch, learnt=learnt),
        )
        return NodeResult(state=done, outcome="committed", said=tuple(said))


def _commit_fact(view: NodeContext, state: RunState, call: Call) -> tuple[RunState, tuple[TraceEntry, ...]]:
    spec = view.pins.by_name[call.tool]
    assert call.observation is not None
    name = _fact_name(view, state, call)
    former = state.facts.get(name)
    validator = spec.verifier.name if spec.verifier is not None else "schema"
    values = small_values(view.desk.json(call.observation), spec.facts) if call.verdict else {}
    fact = Fact(
        version=1 if former is None else former.version + 1,
        digest=call.observation,
        tool=call.tool,
        call=call.id,
        node=call.by,
        validator=validator,
        trust=spec.trust,
        record=view.number + 1,
        at=view.at,
        values=values,
    )
    state, words = settle_open_effect(state, call, "done")
    text = _build_tool_message(
        view,
        state,
        call,
        {"status": "ok", "fact": name, "trust": spec.trust, "verified": call.verdict == "verified"},
    )
    confirmed = state.confirmed
    if spec.is_mutating:
        key = action_key(call)
        confirmed = with_entry(confirmed, key, confirmed.get(key, 0) + 1)
    echoes = state.echoes
    if (given := _get_model_arguments(call)) is not None:
        # A value that the model put into a tool is not trusted, and not read, because the tool returned it.
        echoes = with_entry(echoes, name, given)
    committed = state.evolve(
        facts=with_entry(state.facts, name, fact),
        echoes=echoes,
        confirmed=confirmed,
        failures=tuple(f for f in state.failures if f.tool != call.tool),
        results=(*state.results, _build_call_result(view, call, "ok", text)),
        counters=state.counters.evolve(facts=state.counters.facts + 1),
    )
    body = FactCommitted(
        fact=name,
        version=fact.version,
        digest=fact.digest,
        call=call.id,
        observation=call.observation,
        validator=validator,
        trust=spec.trust,
    )
    return committed, (*words, trace_event(Phase.STATE_UPDATE, body))


def _commit_failure(
    view: NodeContext, state: RunState, call: Call
) -> tuple[RunState, tuple[TraceEntry, ...]]:
    error = call.error or call.verdict or "failed"
    words: tuple[TraceEntry, ...] = ()
    if call.id in state.deeds and state.deeds[call.id].standing == "done":
        # The change was made, but not as wanted. This failure does not allow the same change again.
        state, words = record_open_effect(view, state, call, error)
    failure = Failure(tool=call.tool, error=error, attempt=call.attempt, observation=call.observation)
    echoes = state.echoes
    if call.observation is not None and (given := _get_model_arguments(call)) is not None:
        echoes = with_entry(echoes, f"{view.number + 1} {call.tool} {call.id}", given)
    text = _build_tool_message(view, state, call, {"status": "error", "error": error})
    failed = state.evolve(
        failures=(*state.failures, failure)[-SHOWN_FAILURES:],
        echoes=echoes,
        results=(*state.results, _build_call_result(view, call, "error", text)),
    )
    body = FailureCommitted(
        call=call.id, tool=call.tool, error=error, attempt=call.attempt, observation=call.observation
    )
    return failed, (*words, trace_event(Phase.STATE_UPDATE, body))


def _get_model_arguments(call: Call) -> Hex | None:
    """Return the arguments that a model put into a call, or None if it is not a model's."""
    return call.arguments if call.by == "model" else None


def _build_tool_message(view: NodeContext, state: RunState, call: Call, head: dict[str, object]) -> bytes:
    """Build the tool message for the model: a fixed head and the bounded payload as quoted data.

    Spec: R-LOOP-12.
    """
    limit = view.pins.by_name[call.tool].max_result_chars
    data = view.desk.text(call.observation, limit) if call.observation is not None else ""
    if call.edited and call.arguments is not None:
        head = {
            **head,
            "note": "a person edited the arguments",
            "arguments": view.desk.text(call.arguments, 4_000),
        }
    if open_of(state, call) is not None:
        head = {**head, "effect": "open", "note": MAY_HAVE_HAPPENED}
    if call.unread is not None:
        head = {**head, "answer": _describe_unread_answer(call.unread)}
    return encode_canonical({**head, "data": data})


def _describe_unread_answer(unread: UnreadAnswer) -> dict[str, object]:
    """Describe an answer that was not read whole: its fault, status, size in bytes and digest.

    The digest identifies the answer. Empty values are left out.
    """
    known = {"fault": unread.fault, "status": unread.status, "bytes": unread.size, "sha256": unread.whole}
    return {name: value for name, value in known.items() if value}


def _build_call_result(view: NodeContext, call: Call, status: str, text: bytes) -> Result:
    content = view.desk.put(text)
    return Result(call=call.id, provider_id=call.provider_id, tool=call.tool, status=status, content=content)


def _fact_name(view: NodeContext, state: RunState, call: Call) -> str:
    """Return the name that the fixed node declares, else the next free number."""
    if call.by != "model":
        return str(view.graph.nodes[call.by].config.fact)
    return f"f{state.counters.facts + 1}"


def _has_changed_facts(before: RunState, after: RunState) -> bool:
    return any(after.facts[name].digest != fact.digest for name, fact in before.facts.items())


def _with_counted_errors(counters: Counters, batch: tuple[Call, ...], *, learnt: bool) -> Counters:
    failed = any(call.verdict not in GOOD for call in batch)
    return counters.evolve(
        errors=counters.errors + 1 if failed else 0, unchanged=0 if learnt else counters.unchanged + 1
    )


KIND = UpdateState()
