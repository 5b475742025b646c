"""The judge: what the company's own log says happened, against what this test's reviewers said yes to."""

from decimal import Decimal
from typing import Any

from budgets.ledger_verification import verify_ledger
from budgets.models import Line
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status, TerminalCode
from orchestrator.runs.models.run import LIVE, Run
from orchestrator.runs.queries.pending_signals import has_untaken
from tenancy.db.tenant_context import tenant_transaction
from tests.journeys.interleaving.stage import Stage

ONE_APPROVER_UP_TO = Decimal(200)


def nothing_forbidden_happened(stage: Stage) -> None:
    """Holds after every step: no effect without a grant that reviewers gave, and none twice."""
    refunds, mails = stage.company.effects("payments"), stage.company.effects("mail")
    assert len(refunds) <= 1, f"refunded twice: {refunds}"
    assert len(mails) <= 1, f"told twice: {mails}"
    for refund in refunds:
        assert _granted(stage, "payments.refund", refund["body"], ("order_id", "amount")), (
            f"nobody agreed to {refund}"
        )
    for mail in mails:
        assert _granted(stage, "mail.send", mail["body"], ("to", "text")), f"nobody agreed to {mail}"


def _granted(stage: Stage, tool: str, body: dict[str, Any], names: tuple[str, ...]) -> bool:
    """Whether enough distinct people agreed, to one request, to exactly what the log says was done."""
    needed = 2 if tool == "payments.refund" and Decimal(body["amount"]) > ONE_APPROVER_UP_TO else 1
    people: dict[object, set[object]] = {}
    for word in stage.agreed:
        if word.tool == tool and all(word.arguments[name] == body[name] for name in names):
            people.setdefault(word.request, set()).add(word.who)
    return any(len(who) >= needed for who in people.values())


def everything_came_to_its_end(stage: Stage) -> None:
    """Holds after the closing phase: a typed end, a whole trace that replays, a ledger that adds up."""
    nothing_forbidden_happened(stage)
    run = stage.world.run(stage.run)
    assert Status(run.status) in TERMINAL_STATUSES, (
        f"no way on from {run.status} at {run.position}: {run.reason}"
    )
    assert run.terminal_code in set(TerminalCode)
    _as_the_log_says(stage, run.terminal_code, run.reason)
    assert run.lease_owner is None
    faults = stage.world.faults(stage.run)
    assert not faults, "; ".join(map(str, faults))
    stage.world.sound(stage.run)
    with tenant_transaction(stage.world.id):
        assert verify_ledger(stage.run, open_effects=()) == []
        assert _held() == [], f"something is still reserved: {_held()}"
        assert not has_untaken(stage.run), "a signal was never taken"


def _held() -> list[tuple[object, str, Decimal]]:
    """Every line of the tenant that still holds something, once all its runs have ended."""
    if Run.objects.filter(status__in=LIVE).exists():
        return []
    return list(Line.objects.exclude(reserved=0).values_list("account_id", "dimension", "reserved"))


def _as_the_log_says(stage: Stage, code: str, reason: str) -> None:
    """A success did both things; without anybody in its way the run is a success."""
    done = (len(stage.company.effects("payments")), len(stage.company.effects("mail")))
    if code == TerminalCode.SUCCESS:
        assert done == (1, 1), f"a success with {done}"
    if not stage.intrusions:
        assert code == TerminalCode.SUCCESS, f"nobody interfered, and it ended as {code}: {reason}"
