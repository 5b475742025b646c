"""Reads of the decision queues: their deciders, their open items, and the references to them.

Call them inside the tenant's context.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson
from django.db.models import Count

from approvals.models import Request
from orchestrator.core.approval.named_queues import queues_of_boundary, queues_of_workflow
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.policies.queries.boundaries import boundary_in
from orchestrator.publishing.models import BoundaryVersion, ToolVersion, WorkflowVersion
from orchestrator.reviews.models import ReviewItem
from orchestrator.tools.queries.tools import registry_tools
from tenancy.core.errors import NotFound
from tenancy.core.queues import ALWAYS_OPEN
from tenancy.core.roles import EVERY_QUEUE, SCOPES, Role, Scope
from tenancy.models import Membership, Queue

DECIDING = [role.value for role in Role if Scope.DECIDE in SCOPES[role]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNow:
    """A queue in its current state.

    `people` are the names of its deciders. `named_by` describes the references that keep the queue open.
    `requests` and `reviews` count its open items.
    """

    row: Queue
    people: tuple[str, ...]
    requests: int
    reviews: int
    named_by: tuple[str, ...]

    @property
    def is_cleared(self) -> bool:
        """True if the queue has a decider. Questions in `submitter` are answered by the submitter."""
        return bool(self.people) or self.row.name == "submitter"

    @property
    def keeps_open(self) -> tuple[str, ...]:
        """The reasons why the queue cannot be closed, a few words each; empty where it can."""
        waiting = [
            f"{count} open {noun}{'' if count == 1 else 's'}"
            for count, noun in ((self.requests, "request"), (self.reviews, "review"))
            if count
        ]
        return (*self.named_by, *waiting)


def queues_now() -> list[QueueNow]:
    """Return every queue by name, closed ones last."""
    rows = sorted(Queue.objects.all(), key=lambda row: (row.closed_at is not None, row.name))
    named, people, everywhere = _list_queue_sources(), *_list_deciders()
    requests, reviews = _count_waiting_items()
    return [
        QueueNow(
            row=row, people=tuple(sorted({*everywhere, *people.get(row.name, ())})),
            requests=requests.get(row.name, 0), reviews=reviews.get(row.name, 0),
            named_by=tuple(named.get(row.name, ())),
        )
        for row in rows
    ]  # fmt: skip


def queue_now(name: str) -> QueueNow:
    """Return one queue.

    Raises: NotFound.
    """
    for found in queues_now():
        if found.row.name == name:
            return found
    raise NotFound


def _list_queue_sources() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for queue, words in (
        *_list_built_in_queues(),
        *_by_workflows(),
        *_by_boundaries(),
        *_by_tools(),
        *_by_members(),
    ):
        if words not in found[queue]:
            found[queue].append(words)
    return found


def _list_built_in_queues() -> Iterator[tuple[str, str]]:
    for name in sorted(ALWAYS_OPEN):
        yield name, "runs themselves"


def _by_workflows() -> Iterator[tuple[str, str]]:
    """Yield the queues of each version that is not retired.

    New runs fall back to an older version once the newer ones are retired.
    """
    for row in WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "version"):
        for name in queues_of_workflow(orjson.loads(bytes(row.body))):
            yield name, f"workflow {row.slug}, version {row.version}"


def _by_boundaries() -> Iterator[tuple[str, str]]:
    for row in BoundaryVersion.objects.order_by("slug", "-version").distinct("slug"):
        for _, name in queues_of_boundary(boundary_in(row)):
            yield name, f"boundary {row.slug}"


def _by_tools() -> Iterator[tuple[str, str]]:
    digests = list(registry_tools().values())
    for row in ToolVersion.objects.filter(digest__in=digests).order_by("slug"):
        yield ToolSpec.model_validate_json(bytes(row.body)).queue, f"tool {row.slug}"


def _by_members() -> Iterator[tuple[str, str]]:
    members = Membership.objects.exclude(queues__in=([], list(EVERY_QUEUE))).select_related("person")
    for member in members.order_by("person__name", "role"):
        for name in member.queues:
            yield name, f"{member.person.name} as {member.role}"


def _list_deciders() -> tuple[Mapping[str, list[str]], list[str]]:
    """Return the deciders of each named queue, and those who decide in every queue."""
    named: dict[str, list[str]] = defaultdict(list)
    everywhere: list[str] = []
    deciding = Membership.objects.filter(role__in=DECIDING, person__is_active=True, awaits_confirmation=False)
    for member in deciding.select_related("person"):
        for name in member.queues:
            (everywhere if name == "*" else named[name]).append(member.person.name)
    return named, everywhere


def _count_waiting_items() -> tuple[Mapping[str, int], Mapping[str, int]]:
    requests = Request.objects.filter(status="pending").values("queue").annotate(count=Count("id"))
    reviews = ReviewItem.objects.filter(answered_at=None).values("queue").annotate(count=Count("id"))
    return (
        {row["queue"]: row["count"] for row in requests},
        {row["queue"]: row["count"] for row in reviews},
    )
