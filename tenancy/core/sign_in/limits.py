"""Limits of failed sign-in attempts, after which the next attempt has to wait (R-SEC-11).

Guesses by a stranger do not lock the person out: a failure counts against the address *and* the account that
was tried. Unknown browsers are also limited by address over all accounts and by account over all addresses,
but only after very many failures. A browser in which the person has signed in has a separate count, which no
stranger can fill.
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
    """A limit of `most` failures in a time of `long`."""

    long: timedelta
    most: int


class LimitKind(StrEnum):
    """The count that an attempt would exceed."""

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
    """Times of the failures that one more attempt would be counted with, newest first.

    `device` are those of a known device with this account; None for an unknown device. `familiar`: the person
    has signed in from this address. `lifted`: an administrator has lifted the limits for the account at this
    address.
    """

    device: Sequence[datetime] | None
    pair: Sequence[datetime]
    address: Sequence[datetime]
    account: Sequence[datetime]
    familiar: bool
    lifted: bool


class Refusal(NamedTuple):
    """The limit for which an attempt is refused, and the time until which it is refused."""

    kind: LimitKind
    until: datetime


def judge_attempt(failures: Failures, now: datetime) -> Refusal | None:
    """Return the refusal of the next attempt, or None if the attempt is allowed."""
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
    """Return the refusal if this count is full, else None; `failed` is sorted newest first."""
    ends = [
        failed[window.most - 1] + window.long
        for window in WINDOWS[kind]
        if len(failed) >= window.most and failed[window.most - 1] > now - window.long
    ]
    return Refusal(kind, max(ends)) if ends else None


def source_of(address: Address | None) -> str:
    """Return the unit that counts as one address.

    An IPv6 address is counted by its network. The result is "" for an unknown address.
    """
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_NETWORK), strict=False).network_address)
    return "" if address is None else str(address)
