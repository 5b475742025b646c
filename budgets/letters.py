"""What a letter about an alert says, and sending it (R-BUDGET-10)."""

from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMessage

from budgets.models import Alert

WORDS = {"tenant_day": "today", "tenant_month": "this month"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """An alert on its way to one person."""

    id: str
    tenant: str
    zone: ZoneInfo
    address: str
    alert: Alert


def subject(letter: Letter) -> str:
    """One line; a tenant's name has no line breaks of its own in it."""
    alert = letter.alert
    window = WORDS.get(alert.kind, alert.kind)
    if _is_over(alert):
        window = f"the {alert.kind.removeprefix('tenant_')} that ended on {_ends(letter)}"
    name = " ".join(letter.tenant.split())
    return f"[Interlock] {name}: {alert.threshold} % of the ceiling for {window} is taken"


def body(letter: Letter) -> str:
    """What is taken of what, what happens next, and where to look."""
    alert = letter.alert
    lines = [
        f"{alert.threshold} % of the ceiling of ${_shown(alert.limit_usd)} is taken:",
        f"${_shown(alert.spent_usd)} is spent and ${_shown(alert.held_usd)} is held for runs under way.",
        "",
    ]
    if _is_over(alert):
        lines.append("It ended before it came to that, so nothing is refused for it any more.")
    else:
        if alert.wanted_usd is not None:
            lines.append("What is left was too little for a task or a call, which was refused.")
        lines += [
            "At the ceiling new tasks are refused, and runs stop before their next call with what they have.",
            f"The window turns on {_ends(letter)}. An administrator can raise the ceiling before.",
        ]
    if settings.INTERLOCK_CONSOLE_URL:
        lines += ["", f"{settings.INTERLOCK_CONSOLE_URL}/budgets"]
    return "\n".join(lines)


def send(letter: Letter) -> None:
    """Hand the letter to the mail server. One that is sent again after a crash carries the same Message-ID.

    Raises what the mail back end raises.
    """
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "interlock.invalid"
    headers = {"Message-ID": f"<{letter.id}@{domain}>", "Auto-Submitted": "auto-generated"}
    EmailMessage(subject(letter), body(letter), to=[letter.address], headers=headers).send()


def _is_over(alert: Alert) -> bool:
    """A corrected price, or a call across midnight, may fill a window after its end."""
    return alert.at >= alert.window_end


def _ends(letter: Letter) -> str:
    return f"{letter.alert.window_end.astimezone(letter.zone):%d %b %Y, %H:%M %Z}"


def _shown(amount: Decimal) -> str:
    return f"{amount.quantize(Decimal('0.0001')):f}" if amount < 1 else f"{amount:,.2f}"
