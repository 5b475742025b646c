"""update_state: verified results become facts, verified failures error states (phase 11, rung 5)."""

from typing import ClassVar

from orchestrator.core.calls.open_effects import action_key, noted, open_of, settled
from orchestrator.core.common.frozen_model import Hex, Value, with_entry
from orchestrator.core.domain.run_state import Call, Counters, Fact, Failure, Result, State, Unread
from orchestrator.core.guardrails.exfiltration import ECHOES_SINCE
from orchestrator.core.workflow.goal_inputs import small_values
from orchestrator.core.workflow.node_protocol import Step, View, say
from orchestrator.core.workflow.plain_node import Plain
from traces.core.canonical import canonical
from traces.core.events.phases import Phase
from traces.core.events.trace_events import FactCommitted, FailureCommitted
from traces.core.integrity.chain import Said

SHOWN_FAILURES = 8
GOOD = ("verified", "observed_only")
MAY_HAVE_HAPPENED = "it may have happened; the same call is sent again only where that cannot do it twice"


class Config(Value):
    """Nothing to set."""


class UpdateState(Plain):
    kind: ClassVar[str] = "update_state"
    outcomes: ClassVar[tuple[str, ...]] = ("committed",)
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.STATE_UPDATE)
    artifact: ClassVar[str] = "updated task state"
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
        """Commit every call of the batch and give each its one result."""
        view.desk.require(c.observation for c in view.state.batch if c.observation is not None)
        state = view.state
        said: list[Said] = []
        for call in view.state.batch:
            committed = _commit if call.verdict in GOOD else _fail
            state, words = committed(view, state, call)
            said.extend(words)
        learnt = len(state.facts) > len(view.state.facts) or _changed(view.state, state)
        done = state.evolve(
            batch=(),
            last_askers=tuple(call.by for call in view.state.batch),
            counters=_counted(state.counters, view.state.batch, learnt=learnt),
        )
        return Step(state=done, outcome="committed", said=tuple(said))


def _commit(view: View, state: State, call: Call) -> tuple[State, tuple[Said, ...]]:
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
    state, words = settled(state, call, "done")
    text = _told(
        view,
        state,
        call,
        {"status": "ok", "fact": name, "trust": spec.trust, "verified": call.verdict == "verified"},
    )
    confirmed = state.confirmed
    if spec.mutating:
        key = action_key(call)
        confirmed = with_entry(confirmed, key, confirmed.get(key, 0) + 1)
    echoes = state.echoes
    if (given := _given(view, call)) is not None and (spec.trust == "trusted" or _closer(view)):
        # What a model put into a tool becomes neither trusted nor read by coming back out of it.
        echoes = with_entry(echoes, name, given)
    committed = state.evolve(
        facts=with_entry(state.facts, name, fact),
        echoes=echoes,
        confirmed=confirmed,
        failures=tuple(f for f in state.failures if f.tool != call.tool),
        results=(*state.results, _result(view, call, "ok", text)),
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
    return committed, (*words, say(Phase.STATE_UPDATE, body))


def _fail(view: View, state: State, call: Call) -> tuple[State, tuple[Said, ...]]:
    error = call.error or call.verdict or "failed"
    words: tuple[Said, ...] = ()
    if call.id in state.deeds and state.deeds[call.id].standing == "done":
        # It was made, and is not as it was wanted: the same is not made once more on the strength of that.
        state, words = noted(view, state, call, error)
    failure = Failure(tool=call.tool, error=error, attempt=call.attempt, observation=call.observation)
    echoes = state.echoes
    if call.observation is not None and (given := _given(view, call)) is not None and _closer(view):
        echoes = with_entry(echoes, f"{view.number + 1} {call.tool} {call.id}", given)
    text = _told(view, state, call, {"status": "error", "error": error})
    failed = state.evolve(
        failures=(*state.failures, failure)[-SHOWN_FAILURES:],
        echoes=echoes,
        results=(*state.results, _result(view, call, "error", text)),
    )
    body = FailureCommitted(
        call=call.id, tool=call.tool, error=error, attempt=call.attempt, observation=call.observation
    )
    return failed, (*words, say(Phase.STATE_UPDATE, body))


def _given(view: View, call: Call) -> Hex | None:
    """The arguments that a model put into a call; None where no policy asks for them."""
    return call.arguments if view.pins.policy is not None and call.by == "model" else None


def _closer(view: View) -> bool:
    return view.manifest.core_version >= ECHOES_SINCE


def _told(view: View, state: State, call: Call, head: dict[str, object]) -> bytes:
    """What the model is told: a fixed head and the bounded payload as quoted data (R-LOOP-12)."""
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
        head = {**head, "answer": _unread(call.unread)}
    return canonical({**head, "data": data})


def _unread(unread: Unread) -> dict[str, object]:
    """What is said of an answer that was not read whole: its status, its size, and what tells it from any
    other."""
    known = {"fault": unread.fault, "status": unread.status, "bytes": unread.size, "sha256": unread.whole}
    return {name: value for name, value in known.items() if value}


def _result(view: View, call: Call, status: str, text: bytes) -> Result:
    content = view.desk.put(text)
    return Result(call=call.id, provider_id=call.provider_id, tool=call.tool, status=status, content=content)


def _fact_name(view: View, state: State, call: Call) -> str:
    """The name the fixed node declares, else the next free number."""
    if call.by != "model":
        return str(view.graph.nodes[call.by].config.fact)
    return f"f{state.counters.facts + 1}"


def _changed(before: State, after: State) -> bool:
    return any(after.facts[name].digest != fact.digest for name, fact in before.facts.items())


def _counted(counters: Counters, batch: tuple[Call, ...], *, learnt: bool) -> Counters:
    failed = any(call.verdict not in GOOD for call in batch)
    return counters.evolve(
        errors=counters.errors + 1 if failed else 0, unchanged=0 if learnt else counters.unchanged + 1
    )


KIND = UpdateState()
