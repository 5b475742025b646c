"""Calls that a person sends back to whoever proposed them (R-APPR-3)."""

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.core.allowed_decisions import list_allowed_decisions
from approvals.core.packet import Packet, read_packet
from orchestrator.core.approval.change_requests import asked_anew, told_the_writer
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import Review
from orchestrator.core.engine.machine import advance
from orchestrator.core.workflow.node_protocol import NodeContext
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.simulation import SALT, Simulation
from tests.core.orchestrator.test_loop import decide, open_tools, prompt
from tests.core.orchestrator.test_refund_walk import TEXT, Walking
from tests.proves import proves

WHY = "Why 20.00, and not what the order says?"
MOST = 3


def refund(amount: str, order: str = "A-1") -> tuple[str, Any]:
    """A proposal."""
    return "payments.refund", {"amount": amount, "id": order}


def send_back(run: Simulation, words: str = WHY) -> None:
    """A person's word on the open request."""
    decide(run, "revise", reason=run.keep(words.encode()))


def asked(run: Simulation) -> Packet:
    """The packet of the open request."""
    return read_packet(run.contents[run.requests[0].packet])


@proves("R-APPR-3", part="revise: no right comes of it, and it is no refusal")
def test_what_is_sent_back_is_not_made_and_the_agent_is_told_the_words() -> None:
    run = loop()
    run.reply(refund("20.00"))
    send_back(run)
    assert (open_tools(run), run.requests, run.state.refused, run.state.counters.refusals) == ([], [], {}, 0)
    messages: Any = prompt(run)["messages"]
    (result,) = [one for one in messages if one["role"] == "tool"]
    told = orjson.loads(result["text"])
    assert (told["status"], told["words"]) == ("sent_back", WHY)
    (decided,) = run.said("approval_decided")
    assert (decided.decision, run.said("call_attempted")) == ("revise", [])


@proves("R-APPR-2", part="the difference to the proposal before")
@proves("R-APPR-3", part="revise: the agent answers and proposes anew")
def test_the_next_proposal_shows_what_was_said_what_was_answered_and_what_changed() -> None:
    run = loop()
    run.reply(refund("20.00"))
    first = str(run.requests[0].request)
    send_back(run)
    run.reply(refund("12.00"), text="You are right: the order says 12.00.")
    packet = asked(run)
    assert packet.proposal is not None
    assert (packet.proposal.number, packet.proposal.previous) == (2, first)
    assert (packet.proposal.words, packet.proposal.answer) == ((WHY,), "You are right: the order says 12.00.")
    before, now = orjson.loads(packet.previous_arguments or ""), orjson.loads(packet.arguments)
    assert (before["amount"], now["amount"]) == ("20.00", "12.00")
    decide(run, "approve")
    (made,) = open_tools(run)
    assert orjson.loads(run.contents[made.arguments])["amount"] == "12.00"
    assert made.grant not in (None, first)


@proves("R-TOOL-16", part="a reviewer's words vouch for nothing")
def test_a_value_that_stands_in_the_words_is_still_the_model_s() -> None:
    run = loop()
    run.reply(refund("20.00"))
    send_back(run, "It should be 777.00, and for order Q-9.")
    run.reply(refund("777.00", "Q-9"))
    assert {origin.pointer: origin.origin for origin in asked(run).provenance} == {
        "/amount": "model", "/id": "model",
    }  # fmt: skip


@proves("R-APPR-3", part="revise: bounded")
def test_the_last_proposal_is_only_allowed_or_refused() -> None:
    run = loop()
    for number in range(1, MOST + 1):
        run.reply(refund(f"20.0{number}"))
        may = "revise" in list_allowed_decisions(asked(run))
        assert may is (number < MOST)
        send_back(run)
    assert (run.state.outcome, run.said("call_attempted")) == (TerminalCode.REPEATED_FAILURE, [])


@proves("R-APPR-3", part="revise: a settled step begins anew")
def test_a_step_that_was_settled_may_be_asked_about_again() -> None:
    run = loop()
    run.reply(refund("20.00"))
    send_back(run)
    run.reply(refund("12.00"))
    decide(run, "reject")
    run.reply(refund("11.00"))
    packet = asked(run)
    assert packet.proposal is not None
    assert (packet.proposal.number, packet.proposal.previous, packet.previous_arguments) == (1, "", None)


def test_another_call_of_the_same_reply_knew_nothing_of_the_words() -> None:
    run = loop()
    run.reply(refund("20.00"), refund("30.00", "A-2"))
    send_back(run)
    beside = asked(run)
    assert beside.proposal is not None
    assert (beside.proposal.number, beside.proposal.words, beside.previous_arguments) == (1, (), None)
    decide(run, "reject")
    run.reply(refund("21.00"))
    packet = asked(run)
    assert packet.proposal is not None
    assert (packet.proposal.number, packet.proposal.words) == (2, (WHY,))


@proves(
    "R-APPR-2", part="nobody is shown the words or the arguments of another call as those of the one before"
)
def test_of_two_that_came_back_all_words_are_shown_and_neither_is_the_one_before() -> None:
    run = loop()
    run.reply(refund("20.00"), refund("30.00", "A-2"))
    send_back(run)
    send_back(run, "And why this one?")
    run.reply(refund("30.00", "A-2"), refund("20.00"))
    for _ in range(2):
        packet = asked(run)
        assert packet.proposal is not None
        assert (packet.proposal.number, packet.proposal.words) == (2, (WHY, "And why this one?"))
        assert (packet.proposal.previous, packet.previous_arguments) == ("", None)
        send_back(run, "Both again?")
    run.reply(refund("20.00"))
    packet = asked(run)
    assert packet.proposal is not None
    assert (packet.proposal.number, packet.proposal.words) == (3, ("Both again?",) * 2)


def test_of_two_that_answer_one_neither_is_shown_as_what_became_of_it() -> None:
    run = loop()
    run.reply(refund("20.00"))
    send_back(run)
    run.reply(refund("12.00"), refund("8.00"))
    for _ in range(2):
        packet = asked(run)
        assert packet.proposal is not None
        assert (packet.proposal.words, packet.proposal.previous) == ((WHY,), "")
        assert packet.previous_arguments is None
        decide(run, "reject")


@proves("R-APPR-3", part="revise: no yes or no to a call beside it lengthens the way")
def test_a_call_that_is_settled_beside_it_does_not_begin_the_count_anew() -> None:
    run = loop()
    for number in range(1, MOST):
        run.reply(refund("20.00"), refund("30.00", "A-2"))
        decide(run, "reject")
        packet = asked(run)
        assert packet.proposal is not None
        assert (packet.proposal.number, packet.proposal.returnable) == (number, True)
        send_back(run)
    run.reply(refund("20.00"))
    assert "revise" not in list_allowed_decisions(asked(run))


@pytest.mark.parametrize("first", [("orders.lookup", {"id": "A-1"}), ("ledger.post", {"n": 1})])
def test_what_was_said_outlasts_a_look_up_and_nothing_else(first: tuple[str, Any]) -> None:
    run = loop()
    run.reply(refund("20.00"))
    send_back(run)
    run.reply(first)
    if open_tools(run):
        run.answer({"id": "A-1"})
    run.reply(refund("12.00"))
    packet = asked(run)
    assert packet.proposal is not None
    shown = (WHY,) if first[0] == "orders.lookup" else ()
    assert (packet.proposal.number, packet.proposal.words) == (2, shown)
    assert (packet.previous_arguments is not None) is bool(shown)


def test_nothing_is_sent_back_without_a_word() -> None:
    run = loop()
    run.reply(refund("20.00"))
    decide(run, "revise")
    assert (run.state.outcome, run.said("call_attempted")) == (TerminalCode.REPEATED_FAILURE, [])


def test_a_writer_is_told_until_the_call_of_its_draft_is_asked_for_again() -> None:
    run = loop()
    review = Review(words=run.keep(b"Kinder."), draft=run.keep(b"A person said: yes."), by="send")
    state = run.state.evolve(review=review, draft=run.keep(b"Another draft."))
    view = NodeContext(
        graph=run.graph, manifest=run.manifest, node=run.graph.nodes[state.position], state=state,
        headroom=Headroom(), desk=ContentStore(SALT, run.contents), at=run.now, number=1,
    )  # fmt: skip
    told = orjson.loads(told_the_writer(view) or "")
    assert (told["words"], told["draft"]) == ("Kinder.", "A person said: yes.")
    assert asked_anew(view, state, "refund", ("payments.refund",)).review == review
    assert asked_anew(view, state, "send", ("mail.send",)).review is None


def _turn(run: Simulation, play: Random, chain: list[int]) -> None:
    """One reply of the model, or one person's word. `chain` are the replies, one after another, of which
    something was sent back; a reply breaks it of which people only allowed or refused."""
    if not run.requests:
        if chain and chain[-1] != run.state.linked:
            chain.clear()
        run.reply(*(refund(f"{play.randrange(9)}.00") for _ in range(play.choice((1, 2, 3)))))
        return
    word = play.choice(("revise", "revise", "revise", "approve", "reject"))
    if word == "revise" and "revise" in list_allowed_decisions(asked(run)):
        if run.state.linked not in chain:
            chain.append(run.state.linked)
        send_back(run)
        return
    decide(run, "approve" if word == "approve" else "reject")
    for answer in ({"id": "R-1"},) * 2 if word == "approve" and open_tools(run) else ():
        run.answer(answer)


@proves("R-APPR-3", part="revise: bounded, granted by nobody and replayed whatever is said")
@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_whatever_people_say_a_step_is_sent_back_fewer_times_than_it_may_be_proposed(seed: int) -> None:
    play, run, chain = Random(seed), loop(granted_side_effects=9), list[int]()
    for _ in range(24):
        if run.state.outcome is not None:
            break
        _turn(run, play, chain)
        assert len(chain) < MOST
    granted = {str(body.request) for body in run.said("approval_decided") if body.decision == "approve"}
    flown = [one for one in run.asked if isinstance(one, CallTool) and one.mutating]
    assert {one.grant for one in flown} <= granted
    for before, event, room, walk in run.fed:
        again = advance(run.graph, run.manifest, before, event, room, ContentStore(SALT, run.contents))
        assert (again.state, again.transitions) == (walk.state, walk.transitions)


@proves("R-APPR-3", part="revise: a draft goes back to whoever wrote it")
def test_a_message_is_sent_back_to_its_writer_with_the_draft() -> None:
    walking = Walking({"order_id": "A-1001"})
    walking.decide("approve")
    assert "revise" in list_allowed_decisions(read_packet(walking.content[walking.gate.packet]))
    walking.decide("revise", "Say that we are sorry.")
    *_, writer = [effect for effect in walking.asked if isinstance(effect, CallModel)]
    told = [one["text"] for one in orjson.loads(walking.content[writer.request])["messages"]]
    heard = orjson.loads(told[-1])
    assert (heard["status"], heard["words"], heard["draft"]) == ("sent_back", "Say that we are sorry.", TEXT)
    packet = read_packet(walking.content[walking.gate.packet])
    assert packet.proposal is not None
    assert (packet.proposal.number, packet.previous_arguments) == (2, packet.arguments)
    assert packet.proposal.words == ("Say that we are sorry.",)
    assert (walking.state.review, walking.state.counters.repairs) == (None, 0)
    walking.decide("approve")
    assert walking.state.outcome is TerminalCode.SUCCESS


@proves("R-APPR-3", part="revise: never offered where nobody could propose anew")
def test_a_call_whose_arguments_are_fixed_is_never_sent_back() -> None:
    walking = Walking({"order_id": "A-1001"})
    assert "revise" not in list_allowed_decisions(read_packet(walking.content[walking.gate.packet]))
    walking.decide("revise", "Why so much?")
    assert (walking.state.outcome, "refund" in walking.state.facts) == (TerminalCode.REPEATED_FAILURE, False)
