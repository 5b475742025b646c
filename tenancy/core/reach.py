"""How far an API key reaches: whose runs, of which workflows, and from which addresses it may be used."""

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
    """Whose runs a key reaches."""

    OWN = "own"
    TENANT = "tenant"


class Reach(NamedTuple):
    """The runs that can be seen and changed: those of one principal (None: everybody's), of the workflows
    that one of the patterns fits (none: of all). `*` in a pattern is any number of characters."""

    principal: UUID | None = None
    workflows: tuple[str, ...] = ()

    def has_workflow(self, slug: str) -> bool:
        """Whether runs of this workflow are within it."""
        return not self.workflows or any(_compile_pattern(one).fullmatch(slug) for one in self.workflows)

    @property
    def whose(self) -> str:
        """The principal as the database is told it; "" for everybody."""
        return "" if self.principal is None else str(self.principal)

    @property
    def likes(self) -> str:
        """The patterns as SQL has them, with commas; "" for all."""
        return ",".join(one.replace("_", r"\_").replace("*", "%") for one in self.workflows)


class KeyLimits(NamedTuple):
    """What a key is limited to. `runs` None: as its role has it. No workflows, no addresses: no limit."""

    runs: RunReach | None = None
    workflows: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    def runs_for(self, role: Role) -> RunReach:
        """Whose runs: a client's key reaches its own alone unless it was given more."""
        return self.runs or (RunReach.OWN if role is Role.CLIENT else RunReach.TENANT)


def checked_limits(role: Role, limits: KeyLimits) -> KeyLimits:
    """The limits with all that is left open filled in, and address ranges as the database writes them.

    Raises InvalidInput for a pattern or a range that is none, for too many, and where a key that administers
    would be limited to some runs: what it sets holds for all of them.
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
    """The reach of a key of this principal; None for one that reaches every run of its tenant."""
    whose = principal if runs == RunReach.OWN else None
    return Reach(whose, workflows) if whose is not None or workflows else None


def read_address(text: str) -> Address | None:
    """An address, with or without a port or brackets; None for what is none. An IPv4 address that is written
    as IPv6 is the IPv4 address."""
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
    """Whether an address is in one of the ranges; no ranges: always. An unknown address is in none."""
    if not ranges:
        return True
    return address is not None and any(address in ip_network(one) for one in ranges)


def has_ranges_within(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """True if each of the inner ranges lies in one of the outer ones; no outer ranges are all addresses."""
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
