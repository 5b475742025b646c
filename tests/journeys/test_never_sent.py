"""A change whose first attempt reached nobody: what its second is told is an answer, and no doubt."""

import pytest
from pytest_django import Settings

from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.foreign import called, foreign, onwards
from tests.factories.world import World
from tests.proves import proves

REFUND = {"order_id": "A-1001", "currency": "USD", "reason": "late"}
# More than the order came to: the company refuses it, and is not at it.
TOO_MUCH = "190.00"


@proves("R-TOOL-10", part="what was not sent leaves nothing to doubt")
@pytest.mark.parametrize(
    ("amount", "mode", "made", "status"),
    [(TOO_MUCH, "none", 0, "refused"), ("10.00", "commit_then_refuse", 1, "found")],
)
def test_a_refusal_is_believed_where_nothing_was_sent_before(
    world: World, company: Company, settings: Settings, amount: str, mode: str, made: int, status: str
) -> None:
    with foreign(settings, OpenAIServer()) as server:
        server.play(calls(called("payments.refund", amount=amount, **REFUND)), said("Done."))
        run = world.submit("tool-loop", f"Refund {amount} of order A-1001.", boundary="support")
        onwards(world, run)
        (request,) = world.open_requests(run)
        world.decide(request, world.people.approver)
        company.kill()
        world.drive(run)
        assert [one["status"] for one in world.said(run, "call_observed")] == ["unreachable"]
        company.start()
        company.faults("payments", mode, times=1, on="writes")
        onwards(world, run)
    sent = [asked for asked in company.requests("payments") if asked["method"] == "POST"]
    assert (len(sent), len(company.effects("payments"))) == (1, made)
    assert [one["resolution"] for one in world.said(run, "call_recovered")] == ["found"] * made
    assert [one["status"] for one in world.said(run, "call_observed")][:2] == ["unreachable", status]
    assert [one["request_kind"] for one in world.said(run, "approval_requested")] == ["action"]
    world.sound(run)
