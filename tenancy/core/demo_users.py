"""Users of the demonstration: two tenants, with every role in each."""

from typing import Final

from tenancy.core.roles import EVERY_QUEUE, Role

PASSWORD: Final = "interlock-demo"  # noqa: S105 - printed at start-up, for a demonstration on loopback
CAST: Final[tuple[tuple[str, Role, tuple[str, ...]], ...]] = (
    ("operator", Role.OPERATOR, EVERY_QUEUE),
    ("reviewer", Role.REVIEWER, EVERY_QUEUE),
    ("second-reviewer", Role.REVIEWER, EVERY_QUEUE),
    ("finance", Role.REVIEWER, ("finance",)),
    ("second-finance", Role.REVIEWER, ("finance",)),
    ("admin", Role.ADMIN, EVERY_QUEUE),
    ("auditor", Role.AUDITOR, EVERY_QUEUE),
    ("client", Role.CLIENT, EVERY_QUEUE),
)
HOUSES: Final = (("demo", "Demo"), ("harbor", "Harbor"))
