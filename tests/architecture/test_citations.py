"""What code and tests cite can be looked up in this repository."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_shape import APPS
from tests.servers import ROOT

SOURCES = sorted(
    path
    for folder in (*APPS, "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".yaml", ".md") and "__pycache__" not in path.parts
)
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in SOURCES
    if path != Path(__file__).resolve()
}
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")
}

REQUIREMENT = re.compile(r"\bR-[A-Z]+-[0-9]+\b")
THREAT = re.compile(r"""proves\("([A-Z][0-9]+)"|\((?:[^()"']*, )?([A-Z][0-9]{1,2})(?=[,;:)])""")
ROW = re.compile(r"^\| (R-[A-Z]+-[0-9]+|[A-Z][0-9]+) \| .+ \|$", re.MULTILINE)
PAGE = re.compile(r"(?<![\w/.-])(?:docs/(?:decisions/)?)?[\w-]+\.md\b")
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)")
# Pages that are not in this repository, by the names that were in use for them.
ELSEWHERE = re.compile(r"\b(THE-RING|ARCHITECTURE|DEPENDENCIES|spec [0-9])\b")


def _threats(text: str) -> set[str]:
    return {first or second for first, second in THREAT.findall(text)}


def test_every_number_that_is_cited_can_be_looked_up() -> None:
    rows = ROW.findall(PAGES["docs/requirements.md"])
    assert len(rows) == len(set(rows))
    assert rows
    cited = {
        (name, code)
        for name, text in (TEXTS | PAGES).items()
        if name != "docs/requirements.md"
        for code in {*REQUIREMENT.findall(text), *_threats(text)}
    }
    assert {(name, code) for name, code in cited if code not in rows} == set()
    assert set(rows) <= {code for _, code in cited}


def test_no_page_is_named_that_is_not_here() -> None:
    folders = (ROOT, ROOT / "docs", ROOT / "docs/decisions", ROOT / "orchestrator/prompts")
    known = {*PAGES, *(path.name for folder in folders for path in folder.glob("*.md"))}
    named = {
        (name, page)
        for name, text in (TEXTS | PAGES | {"README.md": (ROOT / "README.md").read_text()}).items()
        for page in PAGE.findall(text)
    }
    assert {(name, page) for name, page in named if page not in known} == set()
    assert {name for name, text in (TEXTS | PAGES).items() if ELSEWHERE.search(text)} == set()


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    broken = set()
    for name, text in PAGES.items():
        for target, anchor in LINK.findall(text):
            path = (ROOT / name).parent / target if target else ROOT / name
            if not path.exists() or (anchor and anchor not in _anchors(path.read_text(encoding="utf-8"))):
                broken.add((name, f"{target}#{anchor}"))
    assert broken == set()


def test_the_index_of_decisions_lists_every_decision() -> None:
    decisions = {path.name for path in (ROOT / "docs/decisions").glob("*.md")} - {"README.md"}
    listed = [target for target, _ in LINK.findall(PAGES["docs/decisions/README.md"])]
    assert sorted(listed) == sorted(decisions)


def test_what_stands_nowhere_would_be_found() -> None:
    assert _threats('@proves("Q7") (R-SEC-1, Q8) (Q9) (see the rules, Q10).') == {"Q7", "Q8", "Q9", "Q10"}
    named = "(docs/nowhere.md), NOWHERE.md, docs/decisions/nothing.md"
    assert PAGE.findall(named) == ["docs/nowhere.md", "NOWHERE.md", "docs/decisions/nothing.md"]
    assert LINK.findall("[a](ring.md#the-send) [b](#here)") == [("ring.md", "the-send"), ("", "here")]
