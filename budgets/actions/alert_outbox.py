"""Sending the letters about alerts (R-BUDGET-10). How letters are claimed and tried again: tenancy/outbox."""

from typing import Final
from uuid import UUID

from budgets.alert_mail import text_of
from budgets.models import AlertMail
from tenancy.core.roles import Role
from tenancy.notifications.mail_outbox import Outbox

BOX: Final = Outbox(
    rows=AlertMail,
    houses="tenants_with_letters",
    about="alert",
    readers=lambda _: (Role.ADMIN,),
    text=text_of,
)


def send_letters() -> int:
    """Send what is due in every house; how many were sent."""
    return BOX.send_due()


def send_letters_of(tenant_id: UUID) -> int:
    """Send a tenant's due letters; how many were sent."""
    return BOX.send_due_of(tenant_id)
