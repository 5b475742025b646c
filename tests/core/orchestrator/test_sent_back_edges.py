"""What compilation asks of an edge for calls that people send back (check 28)."""

from orchestrator.core.compiler.compiler import compile_graph
from tests.core.orchestrator.faulty import before, faults, node, numbers, retarget
from tests.factories.graphs import Document, document, edge, end
from tests.proves import proves


def sent_back(target: str, asker: str) -> Document:
    """An edge for what a person sends back."""
    return edge("gate", "revised", target, "asked_by", node=asker)


def of_draft(plain: Document) -> Document:
    """`tool-2` sends the draft."""
    node(plain, "tool-2")["config"]["arguments"] = {"n": {"from": "draft"}}
    return plain


@proves("R-APPR-3", part="revise: an edge may be left out, or be there for some calls alone")
def test_a_gate_needs_no_edge_for_what_is_sent_back() -> None:
    plain = document("respond", "tool", "respond")
    assert not any(one["outcome"] == "revised" for one in plain["edges"])
    compile_graph(plain)
    compile_graph(before(of_draft(plain), sent_back("respond-1", "tool-2")))


@proves("R-APPR-3", part="revise: an edge leads back")
def test_28_what_is_sent_back_and_never_comes_again() -> None:
    plain = before(document("respond", "tool", "respond"), sent_back("respond-3", "tool-2"))
    (found,) = faults(plain)
    assert (found["number"], found["edge"]) == (28, "gate.revised [asked_by] -> respond-3")


@proves("R-APPR-3", part="revise: what the workflow fixes is nobody's to propose anew")
def test_28_a_call_that_no_model_s_words_change() -> None:
    plain = document("respond", "tool", "respond")
    assert numbers(before(plain, sent_back("respond-1", "tool-2"))) == [28]


def test_28_without_a_guard_every_call_that_comes_by_is_judged() -> None:
    two = before(of_draft(document("respond", "tool", "tool")), edge("gate", "revised", "respond-1"))
    (found,) = [one for one in faults(two, tools=None, boundary=None) if one["number"] == 28]
    assert "tool-3" in found["sentence"]
    compile_graph(before(of_draft(document("respond", "tool")), edge("gate", "revised", "respond-1")))


def test_28_a_model_s_call_that_comes_to_no_turn_of_it() -> None:
    plain = document("respond", "tool", "act")
    model = edge("gate", "revised", "respond-1", "asked_by", node="model")
    more = edge("gate", "revised", "check", "queue_left")
    compile_graph(before(of_draft(plain), more, model))
    late = edge("gate", "revised", "respond-2", "asked_by", node="model")
    found = faults(before(document("act", "respond"), more, late))
    assert "no way leads from respond-2 to a model that asks" in [one["sentence"] for one in found]


def test_28_what_is_sent_back_past_every_model() -> None:
    plain = retarget(document("tool"), "progress", "incomplete", "tool-1")
    compile_graph(plain)
    assert numbers(before(plain, sent_back("progress", "tool-1"))) == [28]


def test_18_what_is_sent_back_goes_to_a_model_and_to_no_end() -> None:
    for target in (end("CONFIRM_REQUIRED"), "tool-1", "invoke"):
        assert 18 in numbers(before(document("tool"), sent_back(target, "tool-1")))
