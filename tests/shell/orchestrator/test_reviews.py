"""The review queue: a run asks, a person takes and answers once, and nothing is approved by it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from approvals.core.errors import NotYours
from approvals.models import Request
from orchestrator.core.common.errors import ReviewRefused
from orchestrator.knowledge.queries.memory import facts_of_run
from orchestrator.reviews.actions.review_queue import answer_review, release_review, take_review
from orchestrator.reviews.models import ReviewItem, ReviewWord
from orchestrator.reviews.queries.reviews import answered_items, item_of, list_review_items, open_items
from tenancy.actions import add_member
from tenancy.core.errors import NotFound
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership
from tests.conftest import House
from tests.factories.tenancy import make_somebody, make_tenant
from tests.proves import proves
from tests.shell.orchestrator.test_file_tools import Desk

ASKED = {"queue": "support", "severity": "high", "subject": "A claim", "reason": "The figures differ."}


class Asking(Desk):
    """A desk whose run has ended with a fact."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.reviewer = make_somebody(self.world.house.tenant, Role.REVIEWER)
        self.run = self.world.submit("tool-loop", "How much is (12 + 30) * 2?")
        self.world.drive(self.run)
        with tenant_transaction(self.tenant):
            self.fact = next(iter(facts_of_run(self.run)))

    def ask(self, **more: Any) -> Any:
        """An item's answer."""
        return self.told("review.request", **{**ASKED, "facts": [self.fact], **more})

    def read(self, item: str) -> Any:
        """How it stands, as the run is told."""
        return self.told("review.read", item=item)


@pytest.fixture
def desk(house: House) -> Asking:
    """A desk that asks."""
    return Asking(house)


@proves("R-TOOL-19", part="review queue")
def test_an_item_is_asked_once_taken_and_answered_and_the_run_reads_the_finding(desk: Asking) -> None:
    made, who = desk.ask(), desk.reviewer.principal.id
    assert (made["state"], made["queue"], desk.ask()) == ("waiting", "support", made)
    item = UUID(made["id"])
    with tenant_transaction(desk.tenant):
        (waits,) = open_items(9)
        assert [one.fact for one in waits.evidence] == [desk.fact]
    take_review(desk.tenant, item, by=who)
    assert desk.read(made["id"])["state"] == "taken"
    answer_review(desk.tenant, item, by=who, finding="objected", note="It is 84.")
    told = desk.read(made["id"])
    assert (told["state"], told["finding"], told["note"]) == ("answered", "objected", "It is 84.")
    with pytest.raises(ReviewRefused, match="it is answered"):
        answer_review(desk.tenant, item, by=who, finding="confirmed", note="No, it is right.")
    with tenant_transaction(desk.tenant):
        assert (open_items(9), [one.row.id for one in answered_items(9)]) == ([], [item])
        assert AuditEntry.objects.filter(verb="review.answered").count() == 1
        assert not Request.objects.exists()


@proves("R-TOOL-19", part="an item counts as answered by its answer alone")
def test_the_database_notes_the_answer_and_lets_nothing_else_of_an_item_change(desk: Asking) -> None:
    item, other = UUID(desk.ask()["id"]), fresh_id()
    with tenant_transaction(desk.tenant):
        ReviewItem.objects.create(
            tenant_id=desk.tenant, id=other, run_id=desk.run, key="other", at=database_now(), evidence=[],
            **ASKED,
        )  # fmt: skip
    answer_review(desk.tenant, item, by=desk.reviewer.principal.id, finding="confirmed", note="So it is.")
    with tenant_transaction(desk.tenant):
        said = ReviewWord.objects.get(item=item)
        assert ReviewItem.objects.get(id=item).answered_at == said.at
        changes: list[tuple[UUID, dict[str, Any]]] = [
            (other, {"answered_at": said.at}), (item, {"answered_at": None}), (other, {"reason": "x"}),
        ]  # fmt: skip
        for one, change in changes:
            with pytest.raises(DatabaseError), transaction.atomic():
                ReviewItem.objects.filter(id=one).update(**change)


def of_queue(limit: int) -> list[Any]:
    """As programs ask for the items of one queue: a rare one, for where it is every second the newest of all
    are as good."""
    return list(list_review_items(queue="rare").order_by("-at", "-id")[:limit])


@proves("R-TOOL-19", part="the queue is read by its index")
@pytest.mark.parametrize(
    ("lines", "index"),
    [(open_items, "review_open"), (answered_items, "review_answered"), (of_queue, "review_of_queue")],
)
def test_a_page_of_reviews_is_read_by_its_index_and_in_its_order(
    desk: Asking, lines: Callable[..., Any], index: str
) -> None:
    desk.ask()
    with tenant_transaction(desk.tenant), CaptureQueriesContext(connection) as asked:
        lines(1)
    with tenant_transaction(desk.tenant), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        for query in asked.captured_queries:
            cursor.execute(f"EXPLAIN {query['sql']}")
            plan = [row[0] for row in cursor.fetchall()]
            # The rows come in the order of the index, and no more of them than are shown.
            assert "Limit" in plan[0], plan
            assert f"Index Scan using {index}" in plan[1], plan


@proves("R-TOOL-19", part="review queue, for whom")
def test_nobody_reviews_their_own_run_or_what_another_has_taken(desk: Asking) -> None:
    item, who = UUID(desk.ask()["id"]), desk.reviewer.principal.id
    with pytest.raises(NotYours, match="own run"):
        take_review(desk.tenant, item, by=desk.world.people.submitter.principal.id)
    other = make_somebody(desk.world.house.tenant, Role.REVIEWER)
    take_review(desk.tenant, item, by=who)
    for act in (take_review, release_review):
        with pytest.raises(ReviewRefused, match="somebody else has taken it"):
            act(desk.tenant, item, by=other.principal.id)
    release_review(desk.tenant, item, by=who)
    with tenant_transaction(desk.tenant):
        Membership.objects.filter(person_id=other.person.id).update(queues=["finance"])
    with pytest.raises(NotYours, match="the queue support"):
        take_review(desk.tenant, item, by=other.principal.id)
    with tenant_transaction(desk.tenant):
        assert item_of(item).state == "waiting"
        assert [one.kind for one in ReviewWord.objects.order_by("number")] == ["taken", "released"]


@proves("R-APPR-23", part="related people at the review queue")
def test_a_person_related_to_the_submitter_does_not_review_the_run(desk: Asking) -> None:
    item, people = UUID(desk.ask()["id"]), desk.world.people
    other = make_somebody(desk.world.house.tenant, Role.REVIEWER)
    add_member(desk.tenant, other.person, Role.CLIENT, by=people.submitter.principal.id)
    with pytest.raises(NotYours, match="related to a person who submitted"):
        take_review(desk.tenant, item, by=other.principal.id)
    assert take_review(desk.tenant, item, by=desk.reviewer.principal.id).state == "taken"


def test_an_item_rests_on_facts_of_its_own_run_and_its_key_asks_one_thing(desk: Asking) -> None:
    assert "committed no fact nothing" in desk.refused("review.request", **ASKED, facts=["nothing"])
    desk.ask()
    assert "something else" in desk.refused("review.request", **{**ASKED, "subject": "Another"})
    with pytest.raises(NotFound):
        take_review(make_tenant().id, UUID(desk.ask()["id"]), by=desk.reviewer.principal.id)
