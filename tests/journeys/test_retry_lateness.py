"""What a run hears of its changes when it has ended: nothing is begun again upon it, and where something was,
people are told (R-SESS-9, G9)."""

from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest

from orchestrator.core.admission.errors import LearntLate, StillRecording
from tenancy.core.event_kinds import RETRY_OUTDATED
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Notice
from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.denied import DOWN, advanced, denied
from tests.factories.doubts import doubts, say
from tests.factories.foreign import called, onwards, to_the_end
from tests.factories.hurry import in_no_hurry
from tests.factories.retrying import checkpoints, retried
from tests.factories.world import World
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

REFUND = {"order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "late"}


@proves("R-SESS-9", part="nothing happens twice")
def test_a_run_that_heard_too_late_that_it_changed_something_is_not_retried(
    world: World, company: Company, server: OpenAIServer, superuser: psycopg.Connection
) -> None:
    with denied(world, company, server, Clock(superuser)) as (run, heard):
        assert checkpoints(world, run)[0].refused is None
        heard()
        # The word is there, and no record says so yet.
        with pytest.raises(StillRecording):
            retried(world, run)
        world.drive(run)
    assert world.kinds(run).count("late_outcome") == 1
    for one in checkpoints(world, run):
        assert isinstance(one.refused, LearntLate)
        with pytest.raises(LearntLate, match=r"ledger\.post"):
            retried(world, run, record=one.record)
    assert len(company.effects("ledger")) == 1
    world.sound(run)


@proves("R-SESS-9", part="a change heard of too late is reconciled")
def test_a_run_that_heard_too_late_is_retried_once_somebody_said_what_happened(
    world: World, company: Company, server: OpenAIServer, superuser: psycopg.Connection
) -> None:
    with denied(world, company, server, Clock(superuser)) as (run, heard):
        heard()
        world.drive(run)
        assert [one.why for one in doubts(world, run)] == ["learnt_late"]
        say(world, run, "happened")
        server.play(said("Nothing to do."))
        assert onwards(world, retried(world, run)).terminal_code == "SUCCESS"
    assert len(company.effects("ledger")) == 1
    world.sound(run)


@proves("R-SESS-9", part="nothing happens twice")
def test_of_what_is_heard_after_a_retry_people_are_told(
    world: World, company: Company, server: OpenAIServer, superuser: psycopg.Connection
) -> None:
    with denied(world, company, server, Clock(superuser)) as (run, heard):
        server.play(said("Nothing to do."))
        again = retried(world, run)
        heard()
        world.drive(run)
    with tenant_transaction(world.id):
        (notice,) = Notice.objects.filter(kind=RETRY_OUTDATED)
    assert (notice.data["run"], notice.data["before"]) == (str(again), str(run))
    assert notice.data["tools"] == ["ledger.post"]
    world.sound(run)


@proves("R-SESS-9", part="nothing happens twice")
def test_a_late_word_of_what_a_run_knows_keeps_nobody_from_retrying_it(
    world: World, company: Company, server: OpenAIServer, superuser: psycopg.Connection
) -> None:
    server.play(calls(called("payments.refund", **REFUND)))
    run = world.submit("tool-loop", "Refund 10.00 of order A-1001.", boundary="support")
    onwards(world, run)
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver)
    company.faults("payments", "hang", times=1, on="writes")
    server.play(DOWN)
    with in_no_hurry("payments.refund"), ThreadPoolExecutor(1) as pool:
        out: Future[None] = pool.submit(advanced, run)
        company.wait_until_held("payments")
        Clock(superuser).lease_dies(run)
        # The other worker sends it again under its key, and has its answer.
        assert to_the_end(world, run).terminal_code == "UNAVAILABLE_DEP"
        company.faults("payments", "none")
        out.result(20)
    world.drive(run)
    assert world.kinds(run).count("late_outcome") == 1
    server.play(said("The refund is done."))
    assert to_the_end(world, retried(world, run)).terminal_code == "SUCCESS"
    assert len(company.effects("payments")) == 1
