"""How many tasks come in: limits of a tenant and of each key, exact however many knock at once."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.db import connections

from budgets.actions import change_rates
from budgets.core.errors import RateReached
from budgets.core.rates import Rates
from orchestrator.runs.models.run import Run
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def rates(world: World, **limits: int) -> None:
    """Set the tenant's limits; what is not named is without."""
    change_rates(world.id, Rates(**limits), by=world.people.admin.id, reason="a test")


def refused(world: World, **more: object) -> str:
    """Which limit refuses one more; "" when none does."""
    try:
        world.submit("tool-loop", SUM, **more)  # type: ignore[arg-type]
    except RateReached as reached:
        return str(reached.data["which"]) if reached.data["retry_after"] >= 1 else "at once"
    return ""


@proves("R-BUDGET-11", part="submissions a minute")
def test_a_minutes_tasks_are_counted_and_one_more_is_refused(world: World) -> None:
    rates(world, submissions_per_minute=2)
    assert [refused(world) for _ in range(3)] == ["", "", "submissions_per_minute"]


@proves("R-BUDGET-11", part="queue depth")
def test_the_queue_has_a_depth_and_a_driven_run_leaves_it(world: World) -> None:
    rates(world, queue_depth=1)
    run = world.submit("tool-loop", SUM)
    assert refused(world) == "queue_depth"
    world.drive(run)
    assert refused(world) == ""


@proves("R-BUDGET-11", part="concurrent runs")
def test_runs_that_wait_for_people_do_not_count_as_at_work(world: World) -> None:
    rates(world, concurrent_runs=1)
    run = world.submit("support-refund", "Refund order A-1001", inputs={"order_id": "A-1001"})
    assert refused(world) == "concurrent_runs"
    assert world.drive(run).status != "in_progress"
    assert refused(world) == ""


@proves("R-BUDGET-11", part="per key")
def test_one_principals_limit_leaves_the_others_theirs(world: World) -> None:
    rates(world, key_submissions_per_minute=1, submissions_per_minute=10)
    assert refused(world) == ""
    assert refused(world) == "key_submissions_per_minute"
    assert refused(world, by=world.people.operator) == ""


@proves("R-BUDGET-11", part="exact at once")
@proves("B6")
def test_however_many_knock_at_once_no_more_come_in(world: World) -> None:
    rates(world, queue_depth=5)

    def knock(_: int) -> bool:
        try:
            return refused(world) == ""
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(knock, range(24))) == 5
    with tenant_transaction(world.id):
        assert Run.objects.count() == 5


def test_a_repeated_submission_is_answered_and_not_counted(world: World) -> None:
    rates(world, submissions_per_minute=1)
    first = world.submit("tool-loop", SUM, key="once")
    assert world.submit("tool-loop", SUM, key="once") == first


def test_a_refused_task_leaves_nothing_behind(world: World) -> None:
    rates(world, queue_depth=1)
    world.submit("tool-loop", SUM)
    before = runs(world.id)
    assert refused(world)
    assert runs(world.id) == before


def runs(tenant_id: UUID) -> int:
    """How many runs there are, by a look that no limit touches."""
    with tenant_transaction(tenant_id):
        return Run.objects.filter(created_at__lte=database_now()).count()


@proves("R-BUDGET-11", part="versions with a reason")
def test_limits_are_versions_that_name_who_set_them_and_why(world: World) -> None:
    rates(world, queue_depth=7)
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="set_rates")
    assert (entry.principal, entry.reason, entry.after["queue_depth"]) == (
        world.people.admin.id,
        "a test",
        7,
    )
