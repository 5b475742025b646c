"""Text of the mail about a budget alert (R-BUDGET-10)."""

from decimal import Decimal
from zoneinfo import ZoneInfo

from budgets.models import Alert, AlertMail
from tenancy.models import Tenant
from tenancy.notifications.mail_outbox import MailText, link_to, one_line

WORDS = {"tenant_day": "today", "tenant_month": "this month"}


def text_of(letter: AlertMail, house: Tenant) -> MailText:
    """Build the mail about an alert to one of the tenant's administrators."""
    alert, zone = letter.alert, ZoneInfo(house.time_zone)
    subject = f"[Interlock] {one_line(house.name)}: {_format_headline(letter, zone)}"
    return MailText(subject=subject, body="\n".join(_build_body_lines(alert, zone)))


def _format_headline(letter: AlertMail, zone: ZoneInfo) -> str:
    alert = letter.alert
    window = WORDS.get(alert.kind, alert.kind)
    if _is_over(alert):
        window = f"the {alert.kind.removeprefix('tenant_')} that ended on {_format_window_end(alert, zone)}"
    taken = f"{alert.threshold} % of the ceiling for {window} is taken"
    return f"a task or a call was refused: {taken}" if letter.refused else taken


def _build_body_lines(alert: Alert, zone: ZoneInfo) -> list[str]:
    """Build the lines of the body: the amounts, the consequences, and a link to the page."""
    lines = [
        f"{alert.threshold} % of the ceiling of ${_format_usd(alert.limit_usd)} is taken:",
        (
            f"${_format_usd(alert.spent_usd)} is spent and ${_format_usd(alert.held_usd)} is held for runs "
            f"under way."
        ),
        "",
    ]
    if _is_over(alert):
        lines.append("It ended before it came to that, so nothing is refused for it any more.")
    else:
        if alert.wanted_usd is not None:
            lines.append("What is left was too little for a task or a call, which was refused.")
        lines += [
            "At the ceiling new tasks are refused, and runs stop before their next call with what they have.",
            (
                f"The window turns on {_format_window_end(alert, zone)}. An administrator can raise the "
                f"ceiling before."
            ),
        ]
    return [*lines, *link_to("/budgets")]


def _is_over(alert: Alert) -> bool:
    """Return whether the alert was raised after its window ended.

    A corrected price, or a call across midnight, may fill a window after its end.
    """
    return alert.at >= alert.window_end


def _format_window_end(alert: Alert, zone: ZoneInfo) -> str:
    return f"{alert.window_end.astimezone(zone):%d %b %Y, %H:%M %Z}"


def _format_usd(amount: Decimal) -> str:
    return f"{amount.quantize(Decimal('0.0001')):f}" if amount < 1 else f"{amount:,.2f}"
