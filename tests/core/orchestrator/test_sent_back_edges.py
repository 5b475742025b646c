"""What compilation asks of an edge for calls that people send back (check 28)."""

from orchestrator.core.compiler import compile_graph
from tests.core.orchestrator.faulty import before, faults, numbers, retarget
from tests.factories.graphs import Document, document, edge, end
from tests.proves import proves


def sent_back(target: str, asker: str) -> Document:
    """An edge for what a person sends back."""
    return edge("gate", "revised", target, "asked_by", node=asker)


@proves("R-APPR-3", part="revise: an edge may be left out, or be there for some calls alone")
def test_a_gate_needs_no_edge_for_what_is_sent_back() -> None:
    plain = document("respond", "tool", "respond")
    assert not any(one["outcome"] == "revised" for one in plain["edges"])
    compile_graph(plain)
    compile_graph(before(plain, sent_back("respond-1", "tool-2")))


@proves("R-APPR-3", part="revise: an edge leads back")
def test_28_what_is_sent_back_and_never_comes_again() -> None:
    plain = before(document("respond", "tool", "respond"), sent_back("respond-3", "tool-2"))
    (found,) = faults(plain)
    assert (found["number"], found["edge"]) == (28, "gate.revised [asked_by] -> respond-3")


def test_28_what_is_sent_back_past_every_model() -> None:
    plain = retarget(document("tool"), "progress", "incomplete", "tool-1")
    compile_graph(plain)
    assert numbers(before(plain, sent_back("progress", "tool-1"))) == [28]


def test_18_what_is_sent_back_goes_to_a_model_and_to_no_end() -> None:
    for target in (end("CONFIRM_REQUIRED"), "tool-1", "invoke"):
        assert 18 in numbers(before(document("tool"), sent_back(target, "tool-1")))
