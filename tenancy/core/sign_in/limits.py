"""How many tries to sign in may fail before the next one waits (R-SEC-11).

A stranger's guesses keep nobody out: what fails counts against the address *and* the account it was tried on.
Only very many failures at one address, over all accounts, or on one account, from everywhere, make strangers
wait. A browser in which the person has signed in has a count of its own, which no stranger can fill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Address, ip_network
from typing import Final, NamedTuple

from tenancy.core.reach import Address

IPV6_NETWORK: Final = 64
"""An IPv6 customer has at least such a network: its addresses count as one."""


class Window(NamedTuple):
    """At most so many failures in so long."""

    long: timedelta
    most: int


class LimitKind(StrEnum):
    """Against which count a try would go too far."""

    DEVICE = "device"
    ADDRESS_AND_ACCOUNT = "address_and_account"
    ADDRESS = "address"
    ACCOUNT = "account"


_FEW: Final = (Window(timedelta(minutes=5), 5), Window(timedelta(days=1), 20))
WINDOWS: Final[dict[LimitKind, tuple[Window, ...]]] = {
    LimitKind.DEVICE: _FEW,
    LimitKind.ADDRESS_AND_ACCOUNT: _FEW,
    LimitKind.ADDRESS: (Window(timedelta(minutes=5), 30),),
    LimitKind.ACCOUNT: (Window(timedelta(hours=1), 60), Window(timedelta(days=1), 200)),
}
LONGEST: Final = max(window.long for windows in WINDOWS.values() for window in windows)
LIFTED: Final = timedelta(minutes=15)
"""How long whoever was let through by an administrator passes at a crowded address, and while very
many addresses guess at the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """When tries failed that one more would be counted with, the newest first.

    `device` are those of a known device with this account, None where the device is a stranger's. `familiar`:
    the person has signed in from this address. `lifted`: an administrator has let them through here.
    """

    device: Sequence[datetime] | None
    pair: Sequence[datetime]
    address: Sequence[datetime]
    account: Sequence[datetime]
    familiar: bool
    lifted: bool


class Refusal(NamedTuple):
    """Why a try is not looked at, and until when."""

    kind: LimitKind
    until: datetime


def judge_attempt(failures: Failures, now: datetime) -> Refusal | None:
    """Why the next try is not looked at; None where it is."""
    if failures.device is not None:
        return reached_limit(LimitKind.DEVICE, failures.device, now)
    if (refusal := reached_limit(LimitKind.ADDRESS_AND_ACCOUNT, failures.pair, now)) is not None:
        return refusal
    if failures.lifted:
        return None
    if (refusal := reached_limit(LimitKind.ADDRESS, failures.address, now)) is not None:
        return refusal
    return None if failures.familiar else reached_limit(LimitKind.ACCOUNT, failures.account, now)


def reached_limit(kind: LimitKind, failed: Sequence[datetime], now: datetime) -> Refusal | None:
    """The refusal where so many failed, the newest first, that this count is full; else None."""
    ends = [
        failed[window.most - 1] + window.long
        for window in WINDOWS[kind]
        if len(failed) >= window.most and failed[window.most - 1] > now - window.long
    ]
    return Refusal(kind, max(ends)) if ends else None


def source_of(address: Address | None) -> str:
    """What counts as one address: an IPv6 one by its network; "" for one that cannot be told."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_NETWORK), strict=False).network_address)
    return "" if address is None else str(address)
