"""Files of a run: names that lead nowhere else, and diffs that fit exactly or not at all."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.core.files.errors import DiffRefused, PathRefused, WorkspaceRefused
from orchestrator.core.files.unified_diff import apply_unified_diff, format_unified_diff, read_diff
from orchestrator.core.files.workspace import (
    LARGEST_FILE,
    MOST_FILES,
    Tree,
    list_changed_paths,
    tree_of,
    with_changed_files,
)
from orchestrator.core.files.workspace_paths import is_within_folder, safe_path
from tests.proves import proves

TEXT = some.text(alphabet="ab\n\r+- @\\é", max_size=60)
FILES = some.dictionaries(some.sampled_from(["a.txt", "b/c.py", "b/d", "é.txt"]), TEXT, max_size=4)


@proves("R-TOOL-19", part="path jail")
@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "../x", "a/../../x", "a/./b", "a//b", "a/", "/etc/passwd", "~/x", "~root/x",
        "a\\..\\b", "C:x", "C:/x", "a:stream", "\\\\server\\share", "a\0b", "a\nb", "a\tb", "a\x7fb",
        "con", "a/NUL", "aux.txt", "com1", "LPT9.log", "COM¹", "PROGRA~1/x", "x.", "x ", " x", "a /b",
        "a\u202eb", "a\u200bb", "\ufeffa", "a\u2024\u2024/b", "\uff0e\uff0e/x", "a\u2215b", "a\u2044b",
        "a\uff0fb",
        "a\u29f8b", "e\u0301.txt", "\ufb01le", "\u0301a", "a" * 101, "a/" * 16 + "b", "a/" * 200 + "b", "a|b",
        "a*b", "a?b",
        "<a>", 'a"b', "a\ud800", "a;b", "$HOME", "`id`", "%2e%2e/x", "\U000e0041a",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_none(path: str) -> None:
    with pytest.raises(PathRefused):
        safe_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "src/app.py",
        ".github/ci.yml",
        "a b (1).txt",
        "résumé.txt",
        "données/été.csv",
        "日本語.txt",
        "a..b",
        "x@2.png",
    ],
)
def test_an_ordinary_name_is_taken_as_it_is(path: str) -> None:
    assert safe_path(path) == path


@proves("R-TOOL-19", part="names that look alike")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Readme.txt", "README.TXT"), ("a/b", "A/b"), ("straße", "STRASSE"), ("paypal.py", "pаypal.py"),
        ("scope", "ѕсоре"), ("resume", "résumé"), ("a", "a/b"), ("A", "a/b"), ("a/b", "a/b/c/d"),
    ],
)  # fmt: skip
def test_two_files_never_look_alike(first: str, second: str) -> None:
    with pytest.raises(PathRefused):
        tree_of({first: b"1", second: b"2"})


def test_a_workspace_has_bounds() -> None:
    with pytest.raises(WorkspaceRefused):
        tree_of({"a": b"x" * (LARGEST_FILE + 1)})
    with pytest.raises(WorkspaceRefused):
        tree_of({f"{n}.bin": b"x" * LARGEST_FILE for n in range(9)})
    with pytest.raises(WorkspaceRefused):
        tree_of({f"{n}.txt": b"" for n in range(MOST_FILES + 1)})


def test_a_tree_is_known_by_all_that_is_in_it() -> None:
    tree = tree_of({"b": b"1", "a": b"2"})
    assert tree == tree_of({"a": b"2", "b": b"1"})
    assert with_changed_files(tree, {"b": None}) == tree_of({"a": b"2"})
    assert len({tree.digest, tree_of({"a": b"1", "b": b"2"}).digest, Tree().digest}) == 3
    assert list_changed_paths(tree, with_changed_files(tree, {"c": b"3", "a": b"9"})) == ("a", "c")
    assert is_within_folder("a/b", "a")
    assert not is_within_folder("ab", "a")


@proves("R-TOOL-19", part="diffs")
@given(before=FILES, after=FILES)
def test_a_difference_applied_is_what_it_was_made_of(before: dict[str, str], after: dict[str, str]) -> None:
    was, now = ({name: text.encode() for name, text in files.items()} for files in (before, after))
    if was == now:
        return
    found = dict(was)
    for path, content in apply_unified_diff(read_diff(format_unified_diff(was, now)), was.get).items():
        if content is None:
            del found[path]
        else:
            found[path] = content
    assert found == now


@given(text=some.text(alphabet=string.ascii_letters + "\n+- @,0123456789/\\", max_size=300))
def test_whatever_is_no_diff_is_refused_in_words(text: str) -> None:
    with pytest.raises((DiffRefused, PathRefused)):
        apply_unified_diff(read_diff(f"--- a/x\n{text}"), lambda _: None)


GOOD = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"


@proves("R-TOOL-19", part="diffs that do not fit")
@pytest.mark.parametrize(
    ("diff", "content"),
    [
        (GOOD, b"one\ntwo!\n"),
        (GOOD, b"zero\none\ntwo\n"),
        (GOOD, b"one\r\ntwo\r\n"),
        (GOOD, None),
        (GOOD, b"\xff\xfe"),
        (GOOD.replace("@@ -1,2", "@@ -1,3"), b"one\ntwo\n"),
        (GOOD + GOOD, b"one\ntwo\n"),
        (GOOD.replace("b/x", "b/y"), b"one\ntwo\n"),
        (GOOD.replace("a/x", "a/../x").replace("b/x", "b/../x"), b"one\ntwo\n"),
        (GOOD.replace("a/x", "/dev/null"), b"one\ntwo\n"),
        (GOOD.replace("b/x", "/dev/null"), b"one\ntwo\n"),
        ("rename from x\nrename to y\n" + GOOD, b"one\ntwo\n"),
        ("old mode 100644\nnew mode 100755\n" + GOOD, b"one\ntwo\n"),
        ("new file mode 120000\n" + GOOD, b"one\ntwo\n"),
        ("GIT binary patch\n" + GOOD, b"one\ntwo\n"),
        ("--- a/x\n+++ b/x\n", b"one\n"),
        ("+ stray\n" + GOOD, b"one\ntwo\n"),
        ("", b""),
    ],
)
def test_a_diff_that_does_not_fit_changes_nothing(diff: str, content: bytes | None) -> None:
    with pytest.raises((DiffRefused, PathRefused)):
        apply_unified_diff(read_diff(diff), lambda _: content)


def test_a_diff_says_what_it_does() -> None:
    found = read_diff("diff --git a/x b/x\nindex 1..2 100644\n" + GOOD)
    assert [(one.path, one.kind, one.added_count, one.removed_count) for one in found] == [
        ("x", "changed", 1, 1)
    ]
    assert apply_unified_diff(found, lambda _: b"one\ntwo\n") == {"x": b"one\nTWO\n"}
    gone = read_diff("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n")
    assert apply_unified_diff(gone, lambda _: b"one\n") == {"x": None}
    new = read_diff("--- /dev/null\n+++ b/n/w.txt\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n")
    assert apply_unified_diff(new, lambda _: None) == {"n/w.txt": b"one"}
