"""People whom something concerns get one letter about it, and endpoints one message, whatever is repeated
(R-TOOL-15, R-BUDGET-14)."""

from typing import Any
from uuid import UUID

import pytest
from django.core import mail
from pytest_django.fixtures import Settings

from tenancy.actions import add_member, remove_member
from tenancy.core.event_kinds import (
    RETRY_OUTDATED,
    UNDO_FAILED,
    format_explanation,
    format_headline,
    place_of,
)
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import Notice, NoticeMail, WebhookMessage
from tenancy.notifications.mail_outbox import Outbox
from tenancy.notifications.notices import send_notices, send_notices_of, told_lately
from tenancy.notifications.outgoing import tell_people
from tests.conftest import House
from tests.doubles.webhook_receiver import Receiver
from tests.doubles.webhook_receiver import receiver as receiver
from tests.factories.tenancy import make_somebody
from tests.factories.webhooks import connect_hook
from tests.proves import proves

LEFT = {"call": "c3", "tool": "mail.send", "why": "irreversible", "says": "it cannot be taken back"}


@pytest.fixture
def outbox(settings: Settings) -> list[mail.EmailMessage]:
    """What was sent, in memory."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    return mail.outbox


def told(house: House, run: str = "r1", workflow: str = "support-refund", **more: Any) -> bool:
    """That something was left behind."""
    data = {"run": run, "workflow": workflow, "left": [LEFT], **more}
    with tenant_transaction(house.tenant.id):
        return tell_people(
            house.tenant.id, UNDO_FAILED, f"{run}:c3", data, at=database_now(), cursor=raw_cursor()
        )


@proves("R-TOOL-15", part="operators and administrators get one letter")
def test_each_whom_it_concerns_gets_one_letter_however_often_it_is_told(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    assert (told(house), told(house)) == (True, False)
    assert send_notices() >= 3
    assert send_notices_of(house.tenant.id) == 0
    people = house.people
    concerned = {one.person.email for one in (people.admin, people.operator, people.submitter)}
    others = {one.person.email for one in (people.approver, people.auditor, people.stranger)}
    assert sorted(one.to[0] for one in outbox if one.to[0] in concerned | others) == sorted(concerned)
    (mine,) = [one for one in outbox if one.to == [people.operator.person.email]]
    assert mine.subject.endswith("An action of a run of support-refund was not taken back")
    assert "- mail.send: it cannot be taken back" in mine.body


@proves("R-TOOL-15", part="the house's programs are told as well")
def test_an_endpoint_gets_one_message_of_it(house: House, receiver: Receiver) -> None:
    connect_hook(house.tenant.id, receiver)
    assert (told(house), told(house)) == (True, False)
    with tenant_transaction(house.tenant.id):
        (one,) = WebhookMessage.objects.filter(kind=UNDO_FAILED)
        assert b'"why":"irreversible"' in bytes(one.body)


def test_a_notice_falls_with_its_transaction_and_stays_in_its_house(house: House) -> None:
    def told_and_died() -> None:
        with tenant_transaction(house.tenant.id):
            told(house)
            raise MemoryError

    with pytest.raises(MemoryError):
        told_and_died()
    told(house)
    with tenant_transaction(house.tenant.id):
        assert (Notice.objects.count(), NoticeMail.objects.count()) == (1, 3)
        assert [one.place for one in told_lately(database_now())] == ["/runs/r1"]
    with tenant_transaction(house.people.other_tenant.id):
        assert (Notice.objects.count(), told_lately(database_now())) == (0, [])


def test_who_has_lost_the_role_meanwhile_gets_no_letter(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    told(house)
    late = make_somebody(house.tenant, Role.ADMIN)
    demoted = house.people.operator.person
    add_member(house.tenant.id, demoted, Role.AUDITOR)
    remove_member(house.tenant.id, demoted, Role.OPERATOR, by=None, reason="a new post")
    assert send_notices_of(house.tenant.id) == 2
    assert not {demoted.email, late.person.email} & {one.to[0] for one in outbox}


def test_a_name_with_line_breaks_makes_no_header_of_its_own(
    house: House, outbox: list[mail.EmailMessage]
) -> None:
    told(house, workflow="x\r\nBcc: all@example.org")
    assert send_notices_of(house.tenant.id) == 3
    assert all("\n" not in one.subject and not one.bcc for one in outbox)


def test_a_kind_has_a_headline_its_lines_and_a_place() -> None:
    data = {"workflow": "w", "metric": "cost", "unit": "usd", "runs": 30, "before": "1", "now": "2"}
    assert format_headline("figures.drift", data) == "The cost of w drifts"
    assert format_headline("figures.drift", {**data, "metric": "steps"}) == "The number of steps of w drifts"
    assert "The median of the newest 30 runs is US$ 2." in format_explanation("figures.drift", data)
    assert place_of("figures.drift", data) == "/budgets/figures?workflow=w"
    outdated = {"workflow": "w", "run": "r2", "before": "r1", "tools": ["mail.send"]}
    assert format_headline(RETRY_OUTDATED, outdated) == "A retry in w may not know all that happened"
    assert "- mail.send" in format_explanation(RETRY_OUTDATED, outdated)
    assert place_of(RETRY_OUTDATED, outdated) == "/runs/r2"
    many = {"workflow": "w", "run": "r", "left": [LEFT, LEFT]}
    assert format_headline(UNDO_FAILED, many) == "2 actions of a run of w were not taken back"
    assert not any("more" in line for line in format_explanation(UNDO_FAILED, many))
    assert format_headline(UNDO_FAILED, {**many, "count": 60}).startswith("60 actions")
    assert "- and 58 more" in format_explanation(UNDO_FAILED, {**many, "count": 60})


def test_a_house_whose_letters_cannot_be_written_holds_up_no_other(
    house: House, outbox: list[mail.EmailMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(house)
    due = Outbox.send_due_of

    def one_fails(box: "Outbox[Any]", tenant_id: UUID) -> int:
        if tenant_id != house.tenant.id:
            return due(box, tenant_id)
        raise KeyError("a letter of a kind that nobody knows")

    monkeypatch.setattr(Outbox, "send_due_of", one_fails)
    send_notices()
    monkeypatch.undo()
    assert send_notices_of(house.tenant.id) == 3
