"""What prompts repeat is written out once: the bytes are the same as if it were written out anew."""

from typing import Any

import orjson

from orchestrator.core.domain.boundary import ToolGrant
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.core.engine.machine import advance
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import SALT, Simulation
from tests.proves import proves

LOOKUP = ("orders.lookup", {"id": "A-1"})


def played(turns: int) -> Simulation:
    """A run that looked up as many orders."""
    run = loop()
    for number in range(turns):
        run.reply(("orders.lookup", {"id": f"A-{number}"}), text=f"turn {number}")
        run.answer({"total": number})
    return run


def offered(run: Simulation, room: Headroom | None = None) -> list[str]:
    """The tools of the prompt that asks for the newest reply, which the last event is fed for again."""
    before, event, headroom, _ = run.fed[-1]
    walk = advance(run.graph, run.manifest, before, event, room or headroom, ContentStore(SALT, run.contents))
    effect = next(effect for effect in walk.effects if isinstance(effect, CallModel))
    content = {**run.contents, **walk.made}
    found: list[dict[str, Any]] = orjson.loads(content[effect.request])["tools"]
    return [tool["name"] for tool in found]


@proves("R-LOOP-11", part="the same bytes")
def test_a_desk_that_outlasts_the_walks_makes_the_same_prompts() -> None:
    run, kept = played(5), dict[object, Any]()
    for before, event, room, walk in run.fed:
        desk = ContentStore(SALT, run.contents, kept)
        again = advance(run.graph, run.manifest, before, event, room, desk)
        assert (again.transitions, again.effects) == (walk.transitions, walk.effects)
    # Five exchanges, and the line of the fact that came of each.
    assert len(kept) == 10


def test_an_exchange_stands_in_the_prompt_with_its_reply_and_results() -> None:
    run = played(2)
    effect = next(effect for effect in run.open.values() if isinstance(effect, CallModel))
    _, *told = orjson.loads(run.contents[effect.request])["messages"]
    assert [(message["role"], message["text"][:6]) for message in told] == [
        ("assistant", "turn 0"),
        ("tool", '{"data'),
        ("assistant", "turn 1"),
        ("tool", '{"data'),
    ]
    assert '\\"total\\":1' in told[3]["text"]


def test_what_changes_from_turn_to_turn_is_looked_at_in_every_turn() -> None:
    run = played(1)
    assert offered(run) == ["orders.lookup", "payments.find", "payments.refund"]
    assert offered(run, Headroom(stopped_tools=("orders.lookup",))) == ["payments.find", "payments.refund"]
    assert offered(run, Headroom(open_circuits=("payments.find",))) == ["orders.lookup", "payments.refund"]
    assert offered(run, Headroom(unavailable={"payments.find": "gone"})) == [
        "orders.lookup",
        "payments.refund",
    ]


def test_a_class_that_was_raised_beyond_the_ceiling_takes_a_tool_away() -> None:
    grants = (ToolGrant(name="orders.*", risk_ceiling=Risk.READ_ONLY), ToolGrant(name="payments.*"))
    run = played(1)
    pins = run.manifest.pins.evolve(boundary=BOUNDARY.evolve(tools=grants))
    run.manifest = run.manifest.evolve(pins=pins)
    assert offered(run) == ["orders.lookup", "payments.find", "payments.refund"]
    raised = Headroom(raised_tools={"orders.lookup": Risk.DESTRUCTIVE, "payments.find": Risk.DESTRUCTIVE})
    assert offered(run, raised) == ["payments.find", "payments.refund"]


def test_pins_with_other_tools_or_another_boundary_show_theirs() -> None:
    run = played(1)
    assert offered(run) == ["orders.lookup", "payments.find", "payments.refund"]
    lookup = TOOLS["orders.lookup"].evolve(description="another")
    fewer = run.manifest.pins.evolve(tools=(lookup, *list(TOOLS.values())[1:]))
    run.manifest = run.manifest.evolve(pins=fewer.evolve(boundary=BOUNDARY.evolve(tools=BOUNDARY.tools[:1])))
    assert offered(run) == ["orders.lookup"]
    before, event, room, _ = run.fed[-1]
    walk = advance(run.graph, run.manifest, before, event, room, ContentStore(SALT, run.contents))
    assert any(b'"description":"another"' in body for body in walk.made.values())


def test_the_newest_facts_are_the_last_of_all_in_order() -> None:
    state = played(1).state
    fact = state.facts["f1"]
    facts = {f"f{number}": fact.evolve(record=number) for number in range(1, 13)}
    names, stored = list(facts), {name: facts[name] for name in sorted(facts)}
    assert [name for name, _ in state.evolve(facts=stored).facts_in_order()] == names
    assert [name for name, _ in state.evolve(facts=stored).facts_in_order(newest=3)] == names[-3:]
