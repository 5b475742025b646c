"""Documents in passages: nothing lost, every place exact, none too long, whatever the text."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.files.chunking import LONGEST, passages_of, plain_document
from tests.proves import proves

PIECES = st.lists(
    st.sampled_from(["word ", "Sentence. ", "\n", "\n\n", "# Head\n", "Title\n---\n", "x" * 700, " ", "é."]),
    max_size=60,
)  # fmt: skip


@proves("R-TOOL-19", part="passages with their place")
@given(st.one_of(st.text(max_size=400), PIECES.map("".join)))
def test_every_character_is_in_a_passage_and_every_place_is_exact(text: str) -> None:
    document = plain_document(text)
    parts = passages_of(document)
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    kept = 0
    for part in parts:
        assert document[part.start : part.end] == part.text
        assert 0 < len(part.text) <= LONGEST
        assert not document[kept : part.start].strip()
        kept = part.end
    assert not document[kept:].strip()


def test_a_heading_begins_a_passage_and_stands_with_those_below_it() -> None:
    text = (
        "Before.\n\n# Returns\n\nWithin 30 days.\n\n" + "A long word. " * 150 + "\n\nRefunds\n---\nAt once."
    )
    parts = passages_of(plain_document(text))
    assert [part.heading for part in parts] == ["", "Returns", "Returns", "Returns", "Refunds"]
    assert parts[1].text.startswith("# Returns")
    assert all(part.text.rstrip().endswith(".") for part in parts)
