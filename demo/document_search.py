"""The company's documents: Markdown files, split into passages with ids, searched by BM25.

A file begins with lines `name: value` up to an empty line; a passage is the text under one `##`. A passage
may end in a record line, `> Record: what = value`: the company's own way to state a rule or a figure so that
it can be compared. The documents do not change at run time.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from demo.errors import not_found

FOLDER = Path(__file__).with_name("documents")
RECORD = re.compile(r"^> Record: ([^=\n]+?) = ([^\n]+)$", re.MULTILINE)
WORD = re.compile(r"[a-z0-9]+")
# The usual constants: saturation of repetitions, and the penalty for long passages.
SATURATION, LENGTH = 1.5, 0.75
SNIPPET = 160
OPEN_TO = ("public", "staff")
STOP = frozenset(
    WORD.findall(
        "a an and are as at be by do does for from has have how i if in is it its may must of on or our say "
        "that the their there they this to was we what when where which who will with you your"
    )
)


class SearchQuery(BaseModel):
    """The search text, and the maximum number of passages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(min_length=1, max_length=300)
    limit: int = Field(5, ge=1, le=20)


class Passage(BaseModel):
    """One section of a document. `authority`: 1 is binding, 5 is hearsay; `gist` is its first sentence."""

    model_config = ConfigDict(frozen=True)

    id: str
    document: str
    title: str
    section: str
    kind: str
    dated: str
    authority: int
    audience: str
    gist: str
    text: str
    about: str | None
    value: str | None
    sha256: str


def search_passages(asked: SearchQuery) -> dict[str, object]:
    """Return the best matching passages, best first; ties are ordered by id."""
    scored = [(score, passage) for passage, score in _compute_bm25_scores(asked.query).items() if score > 0]
    best = sorted(scored, key=lambda found: (-found[0], found[1]))[: asked.limit]
    return {"query": asked.query, "passages": [_build_hit(name, score) for score, name in best]}


def read_passage(name: str) -> dict[str, object]:
    """Return a passage by its id.

    Raises: Refusal 404, also for a passage that is not open to all staff.
    """
    passage = load_passages().get(name)
    if passage is None:
        raise not_found("passage", name)
    return passage.model_dump()


@cache
def load_passages() -> dict[str, Passage]:
    """Return every passage that staff may read, by id."""
    found = [passage for path in sorted(FOLDER.glob("*.md")) for passage in _split_document(path)]
    return {passage.id: passage for passage in found if passage.audience in OPEN_TO}


def tokenize_text(text: str) -> list[str]:
    """Return the significant terms in lower case, each plural without its s."""
    plain = WORD.findall(text.casefold())
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in plain if word not in STOP]


def _build_hit(name: str, score: float) -> dict[str, object]:
    passage = load_passages()[name]
    shown = ("id", "document", "title", "section", "kind", "dated", "authority")
    return passage.model_dump(include=set(shown)) | {
        "snippet": " ".join(passage.text.split())[:SNIPPET],
        "score": f"{score:.3f}",
    }


@cache
def _build_index() -> dict[str, Counter[str]]:
    return {
        name: Counter(tokenize_text(f"{passage.title} {passage.section} {passage.text}"))
        for name, passage in load_passages().items()
    }


def _compute_bm25_scores(query: str) -> dict[str, float]:
    index = _build_index()
    mean = sum(count.total() for count in index.values()) / len(index)
    scores = dict.fromkeys(index, 0.0)
    for word in dict.fromkeys(tokenize_text(query)):
        holding = [name for name, count in index.items() if word in count]
        rarity = math.log(1 + (len(index) - len(holding) + 0.5) / (len(holding) + 0.5))
        for name in holding:
            often = index[name][word]
            held_back = 1 - LENGTH + LENGTH * index[name].total() / mean
            scores[name] += rarity * often * (SATURATION + 1) / (often + SATURATION * held_back)
    return scores


def _split_document(path: Path) -> list[Passage]:
    head, _, body = path.read_text("utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    parts = [part.partition("\n") for part in re.split(r"(?m)^## ", body)[1:]]
    return [
        _build_passage(path.stem, fields, number, section.strip(), text.strip())
        for number, (section, _, text) in enumerate(parts, start=1)
    ]


def _build_passage(document: str, fields: dict[str, str], number: int, section: str, text: str) -> Passage:
    record = RECORD.search(text)
    return Passage(
        id=f"{document}.{number}",
        document=document,
        title=fields["title"],
        section=section,
        kind=fields["kind"],
        dated=fields["dated"],
        authority=int(fields["authority"]),
        audience=fields["audience"],
        gist=re.split(r"(?<=\.) ", " ".join(text.split()), maxsplit=1)[0][:SNIPPET],
        text=text,
        about=record[1].strip() if record else None,
        value=record[2].strip() if record else None,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
