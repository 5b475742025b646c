"""The letter about an endpoint that was turned off (R-API-6)."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class OffLetter:
    """It, on its way to one administrator. One that is sent again carries the same id."""

    id: str
    tenant: str
    webhook: UUID
    name: str
    url: str
    why: str
    address: str


def send_off_letter(letter: OffLetter) -> None:
    """Hand it to the mail server. Raises what the mail back end raises."""
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "interlock.invalid"
    headers = {"Message-ID": f"<{letter.id}@{domain}>", "Auto-Submitted": "auto-generated"}
    name, house = (" ".join(text.split()) for text in (letter.name, letter.tenant))
    lines = [
        f"The webhook {name} ({letter.url}) is off: nothing is sent to it any more.",
        letter.why,
        "",
        "What happens meanwhile waits for it. An administrator turns it on again on its page.",
    ]
    if settings.INTERLOCK_CONSOLE_URL:
        lines += ["", f"{settings.INTERLOCK_CONSOLE_URL}/tenant/webhooks/{letter.webhook}"]
    subject = f"[Interlock] {house}: the webhook {name} is off"
    EmailMessage(subject, "\n".join(lines), to=[letter.address], headers=headers).send()
