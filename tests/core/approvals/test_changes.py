"""What an edit changed, value by value."""

from hypothesis import given
from hypothesis import strategies as st

from approvals.core.argument_diff import Change, diff_json_values
from tests.proves import proves

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b/~"])
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/~"]), inner)
)


@given(JSON)
def test_nothing_changed_is_no_change(value: object) -> None:
    assert diff_json_values(value, value) == ()


@given(JSON, JSON)
def test_whatever_differs_is_named_and_turns_around(before: object, after: object) -> None:
    there, back = diff_json_values(before, after), diff_json_values(after, before)
    assert [one.pointer for one in there] == [one.pointer for one in back]
    assert [(one.before, one.after) for one in there] == [(one.after, one.before) for one in back]
    assert there or repr(before) == repr(after) or _sorted(before) == _sorted(after)


def _sorted(value: object) -> str:
    if isinstance(value, dict):
        return str(sorted((key, _sorted(inner)) for key, inner in value.items()))
    return str([_sorted(inner) for inner in value]) if isinstance(value, list) else repr(value)


@proves("R-APPR-3", part="diff")
def test_each_difference_has_its_pointer() -> None:
    before = {"amount": "150.00", "lines": [1, 2], "note": "x"}
    after = {"amount": "120.00", "lines": [1, 3], "a/b": None}
    assert diff_json_values(before, after) == (
        Change("/a~1b", "added", None, None),
        Change("/amount", "changed", "150.00", "120.00"),
        Change("/lines/1", "changed", 2, 3),
        Change("/note", "removed", "x", None),
    )


def test_true_is_not_one() -> None:
    assert diff_json_values({"n": 1}, {"n": True}) == (Change("/n", "changed", 1, True),)
