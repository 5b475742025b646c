"""Queues as whatever runs name them: publication, closing, opening (R-SEC-11, R-APPR-5)."""

from threading import Event, Thread
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError, connections, transaction

from approvals.models import Request
from orchestrator import bundled_content
from orchestrator.core.common.errors import CompileFailed, QueueInUse, ReviewRefused
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.decisions.actions.queues import close_queue, reopen_queue
from orchestrator.decisions.queries.queues import queue_now, queues_now
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.actions.versions import publish_boundary, publish_tools, publish_workflow
from orchestrator.reviews.actions.review_queue import request_review
from orchestrator.tools.gateways.registry import shipped_tools
from tenancy.actions import add_member
from tenancy.actions.queues import add_queue
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.roles import Role
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, Membership, Queue
from tests.factories.approvals import open_desk
from tests.factories.tenancy import make_tenant
from tests.factories.world import World
from tests.proves import proves


def gated(world: World, queue: str) -> GraphSpec:
    """A shipped workflow whose approval node asks in this queue."""
    spec = bundled_content.load_bundled_workflows()["incident-triage"]
    nodes = tuple(
        node.evolve(config={**node.config, "queue": queue}) if node.kind == "approval" else node
        for node in spec.nodes
    )
    return spec.evolve(nodes=nodes, slug="own-triage")


def publish(world: World, queue: str) -> None:
    """Publish it."""
    with tenant_transaction(world.id):
        publish_workflow(world.id, gated(world, queue), by=None)


@proves("R-SEC-11", part="a workflow names queues that are there")
def test_a_workflow_that_names_an_unknown_queue_is_not_published(world: World) -> None:
    with pytest.raises(CompileFailed) as refused:
        publish(world, "tresury")
    fault = next(one for one in refused.value.data["faults"] if one["rule"] == "queue")
    assert (fault["number"], fault["node"]) == (31, "gate")
    assert "no open queue tresury" in fault["sentence"]
    add_queue(world.id, "tresury", "", by=None)
    publish(world, "tresury")


@proves("R-SEC-11", part="a fixed request for a review names a queue that is there")
def test_a_fixed_review_in_an_unknown_queue_is_not_published(world: World) -> None:
    spec = bundled_content.load_bundled_workflows()["support-ticket"]
    text = spec.model_dump(mode="json", by_alias=True)
    for node in text["nodes"]:
        if node["id"] == "review":
            node["config"]["arguments"]["queue"]["value"] = "nowhere"
    with pytest.raises(CompileFailed) as refused, tenant_transaction(world.id):
        publish_workflow(world.id, text, by=None)
    assert [(one["rule"], one["node"]) for one in refused.value.data["faults"]] == [("queue", "review")]


@proves("R-SEC-11", part="a boundary names queues that are there")
def test_a_boundary_that_names_an_unknown_queue_is_refused_with_its_place(world: World) -> None:
    boundary = bundled_content.load_bundled_boundaries()["ticket"].evolve(
        slug="own", escalation_routes={"a/b": "tresury"}
    )
    with pytest.raises(InvalidInput) as refused, tenant_transaction(world.id):
        publish_boundary(world.id, boundary, by=None)
    fault = refused.value.data["errors"][0]
    assert (fault["pointer"], fault["code"]) == ("/escalation_routes/a~1b", "unknown-queue")


@proves("R-SEC-11", part="a tool names a queue that is there")
def test_a_tool_that_names_an_unknown_queue_is_refused(world: World) -> None:
    spec = next(iter(shipped_tools().values())).spec
    with pytest.raises(InvalidInput) as refused, tenant_transaction(world.id):
        publish_tools(world.id, (spec.evolve(queue="tresury"),), by=None)
    assert refused.value.data["errors"][0]["pointer"] == "/0/queue"


@proves("R-SEC-11", part="what ships finds its queues")
@pytest.mark.parametrize("demonstration", [True, False])
def test_a_furnished_tenant_has_every_queue_that_ships(demonstration: bool) -> None:
    made = make_tenant()
    seed_tenant(made.id, demonstration=demonstration)
    with tenant_transaction(made.id):
        named = {one.row.name for one in queues_now() if one.named_by}
        assert named <= set(Queue.objects.filter(closed_at=None).values_list("name", flat=True))
        assert "operations" in named


@proves("R-SEC-11", part="a review is asked in a queue that is there")
def test_a_review_in_an_unknown_queue_is_refused_and_the_queues_named(world: World) -> None:
    run = (
        world.submit("calculator", "2 + 2")
        if "calculator" in bundled_content.load_bundled_workflows()
        else world.id
    )
    with (
        pytest.raises(ReviewRefused, match=r"no open queue rare; there are .*operations"),
        tenant_transaction(world.id),
    ):
        request_review(
            world.id, run, key="k", queue="rare", severity="low", subject="A", reason="B", facts=()
        )


@proves("R-SEC-11", part="the database refuses a request in a queue that is not there")
def test_the_database_refuses_what_is_asked_in_an_unknown_queue(world: World) -> None:
    with open_desk(world.house) as desk, pytest.raises(IntegrityError, match="queue_of_tenant"):
        desk.ask(queue="rare", make_queue=False)
    with tenant_transaction(world.id):
        assert not Request.objects.exists()
        with pytest.raises(psycopg.errors.ForeignKeyViolation), transaction.atomic():
            raw_cursor().execute(
                "INSERT INTO orchestrator_reviewitem (id, tenant_id, run_id, key, queue, severity, subject,"
                " reason, evidence, sha256, at) VALUES (gen_random_uuid(), %s, gen_random_uuid(), 'k',"
                " 'rare', 'low', 'a', 'b', '[]', '', now())",
                (world.id,),
            )


def named_by(world: World, name: str) -> list[str]:
    """What keeps a queue open."""
    with pytest.raises(QueueInUse) as refused:
        close_queue(world.id, name, by=None, reason="Unused")
    found: list[str] = refused.value.data["named_by"]
    return found


@proves("R-SEC-11", part="a queue that something names is not closed")
def test_a_queue_closes_only_once_nothing_names_it(world: World) -> None:
    add_queue(world.id, "claims", "Contracts", by=None)
    publish(world, "claims")
    assert named_by(world, "claims") == ["workflow own-triage, version 1"]
    publish(world, "operations")
    # The older version is what new runs get once the newer is retired.
    assert named_by(world, "claims") == ["workflow own-triage, version 1"]
    with tenant_transaction(world.id):
        raw_cursor().execute(
            "UPDATE orchestrator_workflowversion SET retired_at = now() WHERE slug = 'own-triage'"
            " AND version = 1"
        )
        member = add_member(world.id, world.people.operator.person, Role.REVIEWER, queues=("claims",))
    assert named_by(world, "claims") == ["the operator as reviewer"]
    with tenant_transaction(world.id):
        Membership.objects.filter(id=member.id).delete()
    with open_desk(world.house) as desk:
        request = desk.ask(queue="claims")
        assert named_by(world, "claims") == ["1 open request"]
        desk.say(request, world.people.approver)
    closed = close_queue(world.id, "claims", by=world.people.admin.id, reason="Unused")
    assert closed.row.closed_at is not None
    assert close_queue(world.id, "claims", by=None, reason="").row.closed_at == closed.row.closed_at
    with pytest.raises(CompileFailed):
        publish(world, "claims")
    with tenant_transaction(world.id):
        line = AuditEntry.objects.get(verb="queue.close")
        assert (line.object, line.principal, line.reason) == (
            "queue:claims", world.people.admin.id, "Unused",
        )  # fmt: skip
    reopen_queue(world.id, "claims", by=None, reason="Again")
    assert reopen_queue(world.id, "claims", by=None, reason="Again").row.closed_at is None
    publish(world, "claims")


@pytest.mark.parametrize("verb", [close_queue, reopen_queue])
def test_a_queue_that_is_not_there_is_neither_closed_nor_opened(world: World, verb: Any) -> None:
    with pytest.raises(NotFound):
        verb(world.id, "rare", by=None, reason="x")


@proves("R-SEC-11", part="queues that runs themselves ask in")
@pytest.mark.parametrize("name", ["budget", "reconciliation", "submitter"])
def test_a_queue_that_runs_ask_in_themselves_is_never_closed(world: World, name: str) -> None:
    assert "runs themselves" in named_by(world, name)
    refused = pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="runs themselves ask")
    with tenant_transaction(world.id), refused, transaction.atomic():
        raw_cursor().execute("UPDATE tenancy_queue SET closed_at = now() WHERE name = %s", (name,))


@proves("R-SEC-11", part="a run under way may ask in a queue that was closed")
def test_a_request_of_a_run_under_way_is_taken_by_a_closed_queue(world: World) -> None:
    add_queue(world.id, "claims", "", by=None)
    close_queue(world.id, "claims", by=None, reason="Unused")
    with open_desk(world.house) as desk:
        request = desk.ask(queue="claims")
        assert desk.say(request, world.people.approver).status == "decided"


@proves("R-SEC-11", part="closing and publishing at the same time")
def test_a_queue_is_not_closed_while_a_publication_that_names_it_is_under_way(world: World) -> None:
    add_queue(world.id, "claims", "", by=None)
    held, done = Event(), Event()

    def close_meanwhile() -> None:
        try:
            held.wait(20)
            outcome.append(attempt(world.id))
        finally:
            done.set()
            connections.close_all()

    def attempt(house: UUID) -> str:
        try:
            close_queue(house, "claims", by=None, reason="Unused")
        except QueueInUse as error:
            return str(error.data["named_by"])
        return "closed"

    outcome: list[str] = []
    other = Thread(target=close_meanwhile)
    other.start()
    with tenant_transaction(world.id):
        publish_workflow(world.id, gated(world, "claims"), by=None)
        held.set()
        assert not done.wait(1)
    other.join(20)
    assert outcome == ["['workflow own-triage, version 1']"]


@proves("R-SEC-11", part="who clears a queue")
def test_a_queue_that_nobody_can_clear_is_known_as_such(world: World) -> None:
    add_queue(world.id, "claims", "", by=None)
    with tenant_transaction(world.id):
        assert queue_now("claims").is_cleared
        Membership.objects.exclude(role="operator").update(queues=["finance"])
        found = queue_now("claims")
        assert (found.is_cleared, found.people) == (False, ())
        assert queue_now("finance").people
        assert queue_now("submitter").is_cleared
        add_member(world.id, world.people.operator.person, Role.REVIEWER, queues=("claims",))
        assert queue_now("claims").people == ("the operator",)
