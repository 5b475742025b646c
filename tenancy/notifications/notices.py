"""Notices for people of a tenant: the mails, and the notices on the tenant's first page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from tenancy.core.event_kinds import (
    PERSON_INVITED,
    READERS,
    RETRY_OUTDATED,
    UNDO_FAILED,
    format_explanation,
    format_headline,
    place_of,
)
from tenancy.models import Notice, NoticeMail, Person, Tenant
from tenancy.notifications.mail_outbox import MailText, Outbox, link_to, one_line
from tenancy.people.first_password import first_password_path

STANDS: Final = timedelta(days=7)
SHOWN: Final = 5
# The kinds that the first page lists; drift has a separate section on that page.
ON_PAGE: Final = (UNDO_FAILED, RETRY_OUTDATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeText:
    """A notice as the first page shows it."""

    headline: str
    lines: Sequence[str]
    place: str
    at: datetime


def told_lately(at: datetime) -> list[NoticeText]:
    """Return the notices of the last seven days, newest first, at most as many as a page shows.

    In the tenant's context.
    """
    rows = Notice.objects.filter(kind__in=ON_PAGE, at__gt=at - STANDS).order_by("-at", "-id")[:SHOWN]
    return [
        NoticeText(
            headline=format_headline(row.kind, row.data),
            lines=format_explanation(row.kind, row.data),
            at=row.at,
            place=place_of(row.kind, row.data),
        )
        for row in rows
    ]


def send_notices() -> int:
    """Send the due mails of every tenant; return how many were sent."""
    return BOX.send_due()


def send_notices_of(tenant_id: UUID) -> int:
    """Send a tenant's due mails; return how many were sent."""
    return BOX.send_due_of(tenant_id)


def text_of(letter: NoticeMail, house: Tenant) -> MailText:
    """Return the text of a mail about a notice."""
    kind, data = letter.notice.kind, letter.notice.data
    said = one_line(format_headline(kind, data))
    at = (first_password_link(letter, data),) if kind == PERSON_INVITED else link_to(place_of(kind, data))
    lines = [f"{said}.", *format_explanation(kind, data), *at]
    return MailText(subject=f"[Interlock] {one_line(house.name)}: {said}"[:200], body="\n".join(lines))


def first_password_link(letter: NoticeMail, data: Mapping[str, str]) -> str:
    """Return the URL at which the mail's recipient sets a first password.

    The URL is built when the mail is sent: nothing that opens an account is stored.
    """
    origin = settings.INTERLOCK_CONSOLE_URL or data["origin"]
    return f"{origin}{first_password_path(Person.objects.get(id=letter.person_id))}"


BOX: Final = Outbox(
    rows=NoticeMail, houses="tenants_with_notices", about="notice", text=text_of,
    readers=lambda letter: READERS[letter.notice.kind],
)  # fmt: skip
