"""The documents, over HTTP from the real process: ranking, passages, who may read what."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.company import Company
from tests.proves import proves

FOLDER = Path(__file__).parents[3] / "demo" / "documents"


def found(company: Company, query: str, limit: int = 5) -> list[dict[str, Any]]:
    passages: list[dict[str, Any]] = company.get("/documents", query=query, limit=limit)["passages"]
    return passages


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Within how many days of delivery may a customer send an item back?", "returns-policy.1"),
        ("price of the hand grinder", "price-list-2026-02.1"),
        ("Why could nobody reach the checkout in January?", "incident-2026-01-checkout.1"),
        ("noise of the electric grinder", "product-electric-grinder.2"),
        ("DESCALING", "product-kettle.2"),
    ],
)
def test_the_passage_that_answers_comes_first(company: Company, query: str, best: str) -> None:
    hits = found(company, query)
    assert hits[0]["id"] == best
    scores = [float(hit["score"]) for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert hits == found(company, query)


@proves("R-LOOP-33", part="a passage says where it comes from")
def test_a_passage_says_where_it_comes_from(company: Company) -> None:
    passage = company.get("/documents/passages/warranty.1")
    assert (passage["document"], passage["dated"], passage["authority"]) == ("warranty", "2025-11-20", 1)
    assert (passage["about"], passage["value"]) == ("grinder warranty", "36 months")
    assert passage["sha256"] == hashlib.sha256(passage["text"].encode()).hexdigest()
    assert passage["gist"] in " ".join(passage["text"].split())


@proves("R-LOOP-33", part="filtered before it is read")
def test_what_is_not_for_everybody_is_not_there(company: Company) -> None:
    assert "board-minutes-2026-01" in {path.stem for path in FOLDER.glob("*.md")}
    hits = found(company, "board decided price of the hand grinder 139.90", 20)
    assert all(hit["document"] != "board-minutes-2026-01" for hit in hits)
    answer = company.http.get(company.url + "/documents/passages/board-minutes-2026-01.1")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


def test_the_limit_holds_and_nothing_is_found_for_strange_words(company: Company) -> None:
    assert len(found(company, "grinder", 2)) == 2
    assert found(company, "zyzzyva") == []
    assert found(company, "the of and") == []


@pytest.mark.parametrize(
    "path", ["/documents", "/documents?query=", "/documents?query=x&limit=0", "/documents?query=x&page=2"]
)
def test_a_bad_question_is_refused(company: Company, path: str) -> None:
    answer = company.http.get(company.url + path)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_query")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_every_document_has_its_head_and_passages(company: Company, path: Path) -> None:
    head, _, body = path.read_text("utf-8").partition("\n\n")
    names = [line.partition(": ")[0] for line in head.splitlines()]
    assert names == ["title", "kind", "dated", "authority", "audience"]
    assert body.startswith("## ")


def test_a_search_can_fail_like_everything_else(company: Company) -> None:
    company.faults("documents", "fail", times=1)
    assert company.http.get(company.url + "/documents?query=x").status_code == 503
    assert company.http.get(company.url + "/documents?query=x").status_code == 200
