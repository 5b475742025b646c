"""Sending the letters about alerts: an outbox, tried again later and later (R-BUDGET-10).

A letter is claimed by moving its next try ahead, sent outside any transaction, and then marked. After a
process that dies in between it is sent again under the same Message-ID: twice rather than never.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from django.db import connection
from django.db.models import F

from budgets.letters import Letter, send
from budgets.models import AlertMail
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.roles import Role
from tenancy.models import Person, Tenant

A_ROUND: Final = 200
TRIES: Final = 10
FIRST_WAIT: Final = timedelta(minutes=1)
log = structlog.stdlib.get_logger(__name__)


def send_letters() -> int:
    """Send what is due in every house; how many were sent. A house whose letters cannot be sent holds up no
    other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenants_with_letters(%s)", (A_ROUND,))
        houses: list[UUID] = [row[0] for row in cursor.fetchall()]
    return sum(send_letters_of(house) for house in houses)


def send_letters_of(tenant_id: UUID) -> int:
    """Send a tenant's due letters; how many were sent."""
    sent = 0
    with tenant(tenant_id):
        due = list(
            AlertMail.objects.filter(sent_at=None, next_at__lte=database_now(), tries__lt=TRIES)
            .order_by("next_at", "id")
            .values_list("id", flat=True)[:A_ROUND]
        )
    for mail in due:
        sent += _send_one(tenant_id, mail)
    return sent


def _send_one(tenant_id: UUID, mail: UUID) -> bool:
    letter = _claimed(tenant_id, mail)
    if letter is None:
        return False
    try:
        send(letter)
    except Exception as error:  # noqa: BLE001 - every mail back end and socket has its own; all are tried again
        log.warning("letter.unsent", letter=str(mail), error=type(error).__name__)
        with tenant(tenant_id):
            AlertMail.objects.filter(id=mail).update(error=type(error).__name__)
        return False
    with tenant(tenant_id):
        AlertMail.objects.filter(id=mail).update(sent_at=database_now(), error="")
    return True


def _claimed(tenant_id: UUID, mail: UUID) -> Letter | None:
    """Take a letter for this sender, or None: somebody else has it, or its reader is no administrator any
    more."""
    with tenant(tenant_id):
        now = database_now()
        found = (
            AlertMail.objects.select_related("alert").filter(id=mail, sent_at=None, next_at__lte=now).first()
        )
        if found is None:
            return None
        wait = FIRST_WAIT * 2**found.tries
        mine = AlertMail.objects.filter(id=mail, sent_at=None, tries=found.tries)
        if not mine.update(tries=F("tries") + 1, next_at=now + wait):
            return None
        # Whoever was demoted since the alert was raised reads no figures of the house any more.
        person = Person.objects.filter(
            id=found.person_id, is_active=True, memberships__tenant=tenant_id, memberships__role=Role.ADMIN
        ).first()
        house = Tenant.objects.get(id=tenant_id)
        if person is None:
            AlertMail.objects.filter(id=mail).update(sent_at=now, error="nobody to read it")
            return None
        return Letter(
            id=str(mail), tenant=house.name, zone=ZoneInfo(house.time_zone), address=person.email,
            alert=found.alert,
        )  # fmt: skip
