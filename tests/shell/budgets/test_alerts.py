"""Administrators are told once per threshold and window, whatever crashes (R-BUDGET-10)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from django.core import mail
from django.db import connections
from pytest_django.fixtures import Settings

from budgets.actions import charge_tenant_check, ensure_tenant_windows, record_cost_correction, tell_refused
from budgets.actions.alert_outbox import send_letters, send_letters_of
from budgets.actions.alerts import tell_line, tell_squared
from budgets.core.errors import CeilingReached
from budgets.core.posting import LineState
from budgets.models import Alert, AlertMail
from budgets.queries.alerts import standing_alerts
from tenancy.actions import add_member, remove_member
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import NOON, Purse, ceilings, inside, open_purse, until_it_waits
from tests.factories.tenancy import make_somebody
from tests.proves import proves

TOMORROW = NOON + timedelta(days=1)


def told(tenant_id: UUID, kind: str = "tenant_day") -> list[int]:
    """The thresholds told, in order."""
    with tenant_transaction(tenant_id):
        found = Alert.objects.filter(kind=kind).order_by("window_start", "threshold")
        return list(found.values_list("threshold", flat=True))


def spend(purse: Purse, amount: str) -> None:
    """One call that costs this much."""
    effect, posting = purse.reserve({"cost_usd": amount})
    assert posting.refused is None
    purse.settle(effect, {"cost_usd": amount})


def dearer(purse: Purse, effect: str, delta: str, *, at: datetime = NOON) -> None:
    """The price of an effect was wrong by this much."""
    with inside(purse.tenant):
        record_cost_correction(
            purse.tenant, purse.run, effect_id=effect, delta=Decimal(delta), price_version="2", by=None,
            reason="a listed price was wrong", at=at,
        )  # fmt: skip


def day_of(tenant_id: UUID) -> UUID:
    """The account of the tenant's day."""
    with inside(tenant_id):
        return ensure_tenant_windows(tenant_id, NOON).day


def letters(tenant_id: UUID) -> list[tuple[int, bool]]:
    """(threshold, sent) of every letter, by threshold."""
    with tenant_transaction(tenant_id):
        rows = AlertMail.objects.order_by("alert__threshold").values_list("alert__threshold", "sent_at")
        return [(threshold, sent is not None) for threshold, sent in rows]


@pytest.fixture
def outbox(settings: Settings) -> list[mail.EmailMessage]:
    """What was sent, in memory."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    return mail.outbox


@proves("R-BUDGET-10", part="once per threshold")
def test_each_threshold_is_told_once_in_the_transaction_that_crosses_it(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purse = open_purse(house.tenant.id)
    spend(purse, "0.49")
    assert told(house.tenant.id) == []
    spend(purse, "0.02")
    assert told(house.tenant.id) == [50]
    spend(purse, "0.44")
    assert told(house.tenant.id) == [50, 80, 95]
    for _ in range(5):
        spend(purse, "0.01")
    assert told(house.tenant.id) == [50, 80, 95, 100]
    with tenant_transaction(house.tenant.id):
        alert = Alert.objects.get(threshold=80)
        assert alert.limit_usd == Decimal(1)
        assert alert.spent_usd + alert.held_usd == Decimal("0.95")


@proves("R-BUDGET-10", part="crash-safe")
def test_an_alert_stands_and_falls_with_its_transaction(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purse = open_purse(house.tenant.id)

    def told_and_died(*given: object) -> None:
        tell_squared(*given)  # type: ignore[arg-type]
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("budgets.actions.posting.tell_squared", told_and_died)
        with pytest.raises(MemoryError):
            purse.reserve({"cost_usd": "0.60"})
    assert told(house.tenant.id) == []
    spend(purse, "0.60")
    assert told(house.tenant.id) == [50]


@proves("R-BUDGET-10", part="at once")
def test_many_runs_crossing_at_once_tell_once(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purses = [open_purse(house.tenant.id) for _ in range(8)]

    def cross(purse: Purse) -> None:
        try:
            effect, posting = purse.reserve({"cost_usd": "0.50"})
            if posting.refused is None:
                purse.settle(effect, {"cost_usd": "0"})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cross, purses))
    assert told(house.tenant.id)[:1] == [50]
    assert len(told(house.tenant.id)) == len(set(told(house.tenant.id)))
    with tenant_transaction(house.tenant.id):
        assert AlertMail.objects.count() == Alert.objects.count()


@proves("R-BUDGET-10", part="each window anew")
def test_the_next_day_is_told_anew_and_the_month_on_its_own(house: House) -> None:
    ceilings(house.tenant.id, daily="1", monthly="3", tranche="0")
    for at in (NOON, TOMORROW):
        purse = open_purse(house.tenant.id, at=at)
        effect, _ = purse.reserve({"cost_usd": "0.80"}, at=at)
        purse.settle(effect, {"cost_usd": "0.80"}, at=at)
    assert told(house.tenant.id) == [50, 80, 50, 80]
    assert told(house.tenant.id, "tenant_month") == [50]
    with tenant_transaction(house.tenant.id):
        assert [(one.kind, one.threshold) for one in standing_alerts(TOMORROW)] == [
            ("tenant_day", 80),
            ("tenant_month", 50),
        ]


def test_an_alert_that_a_raised_ceiling_has_overtaken_is_told_no_more(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    spend(open_purse(house.tenant.id), "1")
    with tenant_transaction(house.tenant.id):
        assert [one.threshold for one in standing_alerts(NOON)] == [100]
    for daily, standing in (("1.8", [50]), ("10", [])):
        ceilings(house.tenant.id, daily=daily, tranche="0")
        with tenant_transaction(house.tenant.id):
            assert [one.threshold for one in standing_alerts(NOON)] == standing
    assert told(house.tenant.id) == [50, 80, 95, 100]


def test_a_lowered_ceiling_tells_too(house: House) -> None:
    ceilings(house.tenant.id, daily="10", tranche="0")
    spend(open_purse(house.tenant.id), "0.80")
    assert told(house.tenant.id) == []
    ceilings(house.tenant.id, daily="1", tranche="0")
    assert told(house.tenant.id) == [50, 80]


@proves("R-BUDGET-10", part="a correction")
def test_a_correction_tells_what_it_reaches(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve({"cost_usd": "0.60"})
    purse.settle(effect, {"cost_usd": "0.60"})
    assert told(house.tenant.id) == [50]
    dearer(purse, effect, "0.37")
    assert told(house.tenant.id) == [50, 80, 95]
    dearer(purse, effect, "0.02")
    assert told(house.tenant.id) == [50, 80, 95]
    with tenant_transaction(house.tenant.id):
        assert Alert.objects.get(threshold=95).spent_usd == Decimal("0.97")


def test_a_letter_about_a_day_that_is_over_does_not_say_today(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    yesterday = NOON - timedelta(days=1)
    ceilings(house.tenant.id, daily="1", tranche="0", at=yesterday)
    purse = open_purse(house.tenant.id, at=yesterday)
    effect, _ = purse.reserve({"cost_usd": "0.40"}, at=yesterday)
    purse.settle(effect, {"cost_usd": "0.40"}, at=yesterday)
    dearer(purse, effect, "0.10")
    assert send_letters_of(house.tenant.id) == 1
    assert "50 % of the ceiling for the day that ended on 21 Nov 2026, 00:00 UTC" in outbox[0].subject
    assert "nothing is refused for it" in outbox[0].body


def test_a_threshold_told_late_is_told_with_the_next(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    day, line = day_of(house.tenant.id), LineState(limit=Decimal(1), used=Decimal("0.81"))
    after = line._replace(used=Decimal("0.96"))
    with inside(house.tenant.id) as cursor:
        tell_line(house.tenant.id, day, before=line, after=after, at=NOON, cursor=cursor)
    assert told(house.tenant.id) == [50, 80, 95]


@proves("R-BUDGET-10", part="a ceiling lowered while money is spent")
def test_a_lowered_ceiling_is_judged_by_what_is_spent_meanwhile(
    house: House, superuser: psycopg.Connection
) -> None:
    ceilings(house.tenant.id, daily="10", tranche="0")
    purse = open_purse(house.tenant.id)

    def lower() -> None:
        try:
            ceilings(house.tenant.id, daily="1", tranche="0")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with inside(house.tenant.id) as cursor:
            purse.reserve({"cost_usd": "0.60"})
            lowered = pool.submit(lower)
            until_it_waits(superuser, cursor, lowered)
        lowered.result()
    assert told(house.tenant.id) == [50]


@proves("R-BUDGET-10", part="by mail")
def test_every_administrator_gets_a_letter_once(house: House, outbox: list[mail.EmailMessage]) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    spend(open_purse(house.tenant.id), "0.50")
    assert send_letters() >= 1
    assert send_letters_of(house.tenant.id) == 0
    mine = [one for one in outbox if one.to == [house.people.admin.person.email]]
    assert len(mine) == 1
    assert "50 % of the ceiling for today" in mine[0].subject
    assert "$0.5000 is spent" in mine[0].body or "$0.5000 is held" in mine[0].body
    assert letters(house.tenant.id) == [(50, True)]


@proves("R-BUDGET-10", part="only to administrators")
def test_who_is_no_administrator_any_more_gets_no_letter(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    stays = make_somebody(house.tenant, Role.ADMIN)
    spend(open_purse(house.tenant.id), "0.50")
    demoted = house.people.admin.person
    add_member(house.tenant.id, demoted, Role.AUDITOR)
    add_member(house.people.other_tenant.id, demoted, Role.ADMIN)
    remove_member(house.tenant.id, demoted, Role.ADMIN, by=None, reason="a new post")
    assert send_letters_of(house.tenant.id) == 1
    assert [one.to for one in outbox] == [[stays.person.email]]
    with tenant_transaction(house.tenant.id):
        assert AlertMail.objects.get(person_id=demoted.id).error == "nobody to read it"
        AlertMail.objects.update(next_at=NOON - timedelta(days=400))
    assert send_letters_of(house.tenant.id) == 0


@proves("R-BUDGET-10", part="retry")
def test_a_letter_that_cannot_be_sent_is_tried_again_later(
    house: House, outbox: list[mail.EmailMessage], settings: Settings
) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    spend(open_purse(house.tenant.id), "0.50")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_PORT = 9
    assert send_letters_of(house.tenant.id) == 0
    with tenant_transaction(house.tenant.id):
        letter = AlertMail.objects.get()
        assert (letter.tries, letter.error, letter.sent_at) == (1, "ConnectionRefusedError", None)
        assert send_letters_of(house.tenant.id) == 0
        AlertMail.objects.update(next_at=NOON - timedelta(days=400))
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert send_letters_of(house.tenant.id) == 1
    assert len(outbox) == 1
    assert outbox[0].extra_headers["Message-ID"].startswith(f"<{letter.id}@")


@proves("R-BUDGET-10", part="way back")
def test_a_full_day_opens_when_it_turns_or_when_an_admin_raises_it(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purse = open_purse(house.tenant.id)
    spend(purse, "1")
    purse.close()
    with inside(house.tenant.id), pytest.raises(CeilingReached) as full:
        charge_tenant_check(house.tenant.id, NOON)
    seconds = full.value.data["retry_after"]
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON + timedelta(seconds=seconds))
    ceilings(house.tenant.id, daily="2", tranche="0")
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON)


@proves("R-BUDGET-10", part="way back, from what runs hold")
def test_a_day_that_is_full_of_what_runs_hold_is_worth_another_try_soon(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve({"cost_usd": "1"})
    with inside(house.tenant.id), pytest.raises(CeilingReached, match="come back in 30 seconds, or have"):
        charge_tenant_check(house.tenant.id, NOON)
    purse.settle(effect, {"cost_usd": "0.2"})
    purse.close()
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON)


@proves("R-BUDGET-10", part="too little for one is not the ceiling for all")
def test_what_is_too_little_for_a_run_is_told_once_as_what_it_is_and_closes_nothing(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    spend(open_purse(house.tenant.id), "0.97")
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON)
    for wanted in ("0.07", "0.05", "0.01"):
        with inside(house.tenant.id) as cursor:
            tell_refused(house.tenant.id, Decimal(wanted), NOON, cursor)
    assert told(house.tenant.id) == [50, 80, 95, 97]
    with tenant_transaction(house.tenant.id):
        assert Alert.objects.get(threshold=97).wanted_usd == Decimal("0.07")
        assert AlertMail.objects.filter(alert__threshold=97).count() == 1
        assert [alert.threshold for alert in standing_alerts(NOON) if alert.kind == "tenant_day"] == [97]
    with inside(house.tenant.id):
        charge_tenant_check(house.tenant.id, NOON)
    send_letters_of(house.tenant.id)
    (near,) = [letter for letter in outbox if "97 %" in letter.subject]
    assert "What is left was too little for a task or a call, which was refused." in near.body
    spend(open_purse(house.tenant.id), "0.03")
    assert told(house.tenant.id) == [50, 80, 95, 97, 100]
    with inside(house.tenant.id), pytest.raises(CeilingReached):
        charge_tenant_check(house.tenant.id, NOON)


@proves("R-BUDGET-10", part="a refusal at a share that was told before is told too")
def test_what_is_refused_between_95_and_96_percent_has_a_letter_of_its_own_once(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    spend(open_purse(house.tenant.id), "0.955")
    for wanted in ("0.07", "0.05"):
        with inside(house.tenant.id) as cursor:
            tell_refused(house.tenant.id, Decimal(wanted), NOON, cursor)
    assert told(house.tenant.id) == [50, 80, 95]
    assert send_letters_of(house.tenant.id) == 4
    (refused,) = [one for one in outbox if "was refused: 95 %" in one.subject]
    assert "What is left was too little for a task or a call, which was refused." in refused.body
    assert len([one for one in outbox if "95 %" in one.subject]) == 2
    spend(open_purse(house.tenant.id), "0.045")
    with inside(house.tenant.id) as cursor:
        tell_refused(house.tenant.id, Decimal("0.01"), NOON, cursor)
    assert send_letters_of(house.tenant.id) == 1
    assert "100 %" in outbox[-1].subject


def test_a_dear_call_refused_far_below_the_ceiling_closes_nothing(house: House) -> None:
    ceilings(house.tenant.id, daily="1", tranche="0")
    with inside(house.tenant.id) as cursor:
        tell_refused(house.tenant.id, Decimal(5), NOON, cursor)
        charge_tenant_check(house.tenant.id, NOON)
    assert told(house.tenant.id) == []
