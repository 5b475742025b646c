"""Reach of an API key: whose runs, of which workflows, and from which client addresses."""

import re
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple
from uuid import UUID

from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Role, Scope, scopes_of

Address = IPv4Address | IPv6Address
MOST: Final = 20
WORKFLOW: Final = re.compile(r"[a-z0-9*][a-z0-9_*-]{0,63}", re.ASCII)


class RunReach(StrEnum):
    """Owner of the runs that a key reaches."""

    OWN = "own"
    TENANT = "tenant"


class Reach(NamedTuple):
    """The runs that can be seen and changed, limited by principal and workflow.

    A `principal` of None means every principal. A workflow must match one of the patterns; no patterns mean
    every workflow. `*` in a pattern matches any number of characters.
    """

    principal: UUID | None = None
    workflows: tuple[str, ...] = ()

    def has_workflow(self, slug: str) -> bool:
        """Return whether runs of this workflow are within the reach."""
        return not self.workflows or any(_compile_pattern(one).fullmatch(slug) for one in self.workflows)

    @property
    def whose(self) -> str:
        """The principal as the database setting contains it; "" for every principal."""
        return "" if self.principal is None else str(self.principal)

    @property
    def likes(self) -> str:
        """The patterns as SQL LIKE patterns, separated by commas; "" for every workflow."""
        return ",".join(one.replace("_", r"\_").replace("*", "%") for one in self.workflows)


class KeyLimits(NamedTuple):
    """Limits of a key. `runs` None: the default of its role. Empty `workflows` or `addresses`: no limit."""

    runs: RunReach | None = None
    workflows: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    def runs_for(self, role: Role) -> RunReach:
        """Return whose runs the key reaches; by default a client's key reaches only its own."""
        return self.runs or (RunReach.OWN if role is Role.CLIENT else RunReach.TENANT)


def checked_limits(role: Role, limits: KeyLimits) -> KeyLimits:
    """Return the limits with defaults filled in and address ranges in canonical form.

    Raises: InvalidInput for an invalid pattern or range, for too many of them, and if an administrator's key
    would be limited to some runs, because its settings apply to all of them.
    """
    whole = KeyLimits(
        limits.runs_for(role),
        tuple(dict.fromkeys(_validate_pattern(one) for one in limits.workflows)),
        tuple(dict.fromkeys(_parse_address_range(one) for one in limits.addresses)),
    )
    for name, given in (("workflows", whole.workflows), ("addresses", whole.addresses)):
        if len(given) > MOST:
            raise _build_input_error(name, "too-many", f"A key has at most {MOST} {name}.")
    if Scope.ADMIN in scopes_of((role,)) and (whole.runs is RunReach.OWN or whole.workflows):
        name = "workflows" if whole.workflows else "runs"
        raise _build_input_error(
            name, "admin-reach", "A key that administers cannot be limited to some runs."
        )
    return whole


def reach_of(runs: str, workflows: tuple[str, ...], principal: UUID) -> Reach | None:
    """Return the reach of a key of this principal, or None if the key reaches every run of its tenant."""
    whose = principal if runs == RunReach.OWN else None
    return Reach(whose, workflows) if whose is not None or workflows else None


def read_address(text: str) -> Address | None:
    """Parse an address, with or without a port or brackets; return None if it is invalid.

    An IPv4 address that is written as IPv6 becomes the IPv4 address.
    """
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def is_within(address: Address | None, ranges: tuple[str, ...]) -> bool:
    """Return whether an address is in one of the ranges; always true if there are no ranges.

    An unknown address is in no range.
    """
    if not ranges:
        return True
    return address is not None and any(address in ip_network(one) for one in ranges)


def has_ranges_within(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """Return whether each inner range is within an outer range; no outer ranges mean all addresses."""
    return not outer or all(any(_lies_in(one, other) for other in outer) for one in inner)


def _lies_in(inner: str, outer: str) -> bool:
    one, other = ip_network(inner), ip_network(outer)
    if isinstance(one, IPv4Network) and isinstance(other, IPv4Network):
        return one.subnet_of(other)
    return isinstance(one, IPv6Network) and isinstance(other, IPv6Network) and one.subnet_of(other)


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _validate_pattern(text: str) -> str:
    if not WORKFLOW.fullmatch(text):
        detail = f"{text!r} is no workflow: small letters, digits, - and _, and * for any of them."
        raise _build_input_error("workflows", "invalid", detail)
    return text


def _parse_address_range(text: str) -> str:
    try:
        found: IPv4Network | IPv6Network = ip_network(text.strip())
    except ValueError:
        detail = f"{text!r} is no address range, such as 10.1.0.0/16 or 2001:db8::/48."
        raise _build_input_error("addresses", "invalid", detail) from None
    return str(found)


def _build_input_error(name: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": f"/{name}", "code": code, "detail": detail}])
