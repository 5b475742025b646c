"""Who plays in the demonstration: two tenants, every role in each."""

from typing import Final

from tenancy.core.roles import Role

PASSWORD: Final = "interlock-demo"  # noqa: S105 - printed at start-up, for a demonstration on loopback
CAST: Final[tuple[tuple[str, Role, tuple[str, ...]], ...]] = (
    ("operator", Role.OPERATOR, ()),
    ("reviewer", Role.REVIEWER, ()),
    ("second-reviewer", Role.REVIEWER, ()),
    ("finance", Role.REVIEWER, ("finance",)),
    ("second-finance", Role.REVIEWER, ("finance",)),
    ("admin", Role.ADMIN, ()),
    ("auditor", Role.AUDITOR, ()),
    ("client", Role.CLIENT, ()),
)
HOUSES: Final = (("demo", "Demo"), ("harbor", "Harbor"))
