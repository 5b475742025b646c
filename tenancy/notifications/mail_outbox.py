"""An outbox for mails stored in tables, retried at increasing intervals (R-BUDGET-10).

A mail is claimed by moving its next attempt ahead, sent outside any transaction, and then marked as sent. If
the process dies in between, the mail is sent again with the same Message-ID: twice rather than never.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import connection
from django.db.models import F, QuerySet

from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import OutgoingLetter, Person, Tenant

A_ROUND: Final = 200
TRIES: Final = 10
FIRST_WAIT: Final = timedelta(minutes=1)
log = structlog.stdlib.get_logger(__name__)
L = TypeVar("L", bound=OutgoingLetter)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailText:
    """Subject and body of a mail; the subject is one line."""

    subject: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox(Generic[L]):
    """A table of mails with the functions that send them.

    `houses` is the database function that lists the tenants with due mails, `about` the relation to the row
    that a mail is about, `readers` returns the roles of its recipients, `text` its content.
    """

    rows: type[L]
    houses: str
    about: str
    readers: Callable[[L], Collection[Role]]
    text: Callable[[L, Tenant], MailText]

    def letters(self, **which: object) -> "QuerySet[L]":
        """Return the rows that match the filter; an abstract model has no `objects` attribute."""
        return self.rows._default_manager.filter(**which)  # noqa: SLF001

    def send_due(self) -> int:
        """Send the due mails of every tenant; return how many were sent.

        A tenant whose mails cannot be sent does not block the others.
        """
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {self.houses}(%s)", (A_ROUND,))
            found: list[UUID] = [row[0] for row in cursor.fetchall()]
        return sum(self._of_house(house) for house in found)

    def _of_house(self, tenant_id: UUID) -> int:
        try:
            return self.send_due_of(tenant_id)
        except Exception as error:  # noqa: BLE001 - a mail's text is built from many tables; all errors are retried
            log.warning("mail.outbox_blocked", tenant=str(tenant_id), error=type(error).__name__)
            return 0

    def send_due_of(self, tenant_id: UUID) -> int:
        """Send a tenant's due mails; return how many were sent."""
        with tenant_transaction(tenant_id):
            due = self.letters(sent_at=None, next_at__lte=database_now(), tries__lt=TRIES)
            ids = list(due.order_by("next_at", "id").values_list("id", flat=True)[:A_ROUND])
        return sum(self._send_one(tenant_id, letter) for letter in ids)

    def _send_one(self, tenant_id: UUID, letter: UUID) -> bool:
        found = self._claim_mail(tenant_id, letter)
        if found is None:
            return False
        address, text = found
        try:
            send_queued_mail(letter, address, text)
        except Exception as error:  # noqa: BLE001 - every mail back end has its own exceptions; all are retried
            log.warning("mail.send_failed", letter=str(letter), error=type(error).__name__)
            self._mark(tenant_id, letter, error=type(error).__name__)
            return False
        self._mark(tenant_id, letter, sent=True)
        return True

    def _mark(self, tenant_id: UUID, letter: UUID, *, sent: bool = False, error: str = "") -> None:
        with tenant_transaction(tenant_id):
            mine = self.letters(id=letter)
            mine.update(error=error, **({"sent_at": database_now()} if sent else {}))

    def _claim_mail(self, tenant_id: UUID, letter: UUID) -> tuple[str, MailText] | None:
        """Claim a mail and return its address and text, or None if it is not to be sent.

        Another process may have claimed the mail, or its recipient may no longer read it.
        """
        with tenant_transaction(tenant_id):
            now = database_now()
            waiting = self.letters(id=letter, sent_at=None)
            found = waiting.select_related(self.about).filter(next_at__lte=now).first()
            if found is None:
                return None
            wait = FIRST_WAIT * 2**found.tries
            if not waiting.filter(tries=found.tries).update(tries=F("tries") + 1, next_at=now + wait):
                return None
            # A recipient who has lost the role since the mail was written may not read it any more.
            person = Person.objects.filter(
                id=found.person_id, is_active=True, memberships__tenant=tenant_id,
                memberships__role__in=[role.value for role in self.readers(found)],
            ).first()  # fmt: skip
            if person is None:
                waiting.update(sent_at=now, error="nobody to read it")
                return None
            return person.email, self.text(found, Tenant.objects.get(id=tenant_id))


def send_queued_mail(letter: UUID, address: str, text: MailText) -> None:
    """Send a mail through the mail server. A mail that is sent again after a crash has the same Message-ID.

    Raises: any exception of the mail back end.
    """
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "interlock.invalid"
    headers = {"Message-ID": f"<{letter}@{domain}>", "Auto-Submitted": "auto-generated"}
    EmailMessage(text.subject, text.body, to=[address], headers=headers).send()


def one_line(text: str) -> str:
    """Return a name or a subject without line breaks."""
    return " ".join(text.split())


def link_to(path: str) -> tuple[str, ...]:
    """Return the lines with the address of a console page; none if the console's URL is not configured."""
    return ("", f"{settings.INTERLOCK_CONSOLE_URL}{path}") if settings.INTERLOCK_CONSOLE_URL else ()
