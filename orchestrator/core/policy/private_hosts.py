"""The non-public places that the operator lets tenants open; no tenant's own list goes beyond them.

Spec: P8, W3.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from orchestrator.core.common.frozen_model import FrozenModel

LOOPBACK: Final = "loopback"
NAT64: Final = IPv6Network("64:ff9b::/96")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*")
_ENTRY = re.compile(
    r"(?:\[(?P<six>[^\]]+)\]|(?P<other>[^\[\]:]+))(?P<length>/[0-9]{1,3})?(?::(?P<port>[0-9]{1,5}))?"
)


def plain_address(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the address, with an IPv6 address that carries IPv4 (mapped, NAT64, 6to4) as IPv4."""
    if not isinstance(address, IPv6Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


class AllowedPlaces(FrozenModel):
    """One entry of the operator's list: a network, or whatever address a host's exact name resolves to.

    `port` None: every port.
    """

    network: IPv4Network | IPv6Network | None = None
    host: str = ""
    port: int | None = None

    def covers(self, host: str, port: int, address: str) -> bool:
        """Return whether the entry lets tenants open `host` and `port` at this address."""
        return self.may_cover(host, port) and (
            self.network is None or plain_address(ip_address(address)) in self.network
        )

    def may_cover(self, host: str, port: int) -> bool:
        """Return whether the entry could cover `host` and `port` at some address."""
        return self.port in (None, port) and (self.network is not None or self.host == host)


def read_bound(text: str) -> tuple[AllowedPlaces, ...]:
    """Parse the operator's list, which is separated by commas.

    An entry is `loopback`, a network such as 10.1.0.0/16 or [fd00::]/8, an address, or a host's name. A port
    may follow after a colon.

    Raises: ValueError.
    """
    return tuple(
        entry
        for part in text.split(",")
        if part.strip()
        for entry in _parse_allowed_places(part.strip().lower())
    )


def bound_covers(bound: Iterable[AllowedPlaces], host: str, port: int, address: str) -> bool:
    """Return whether the operator lets tenants open `host` and `port` at this address."""
    return any(one.covers(host, port, address) for one in bound)


def _parse_allowed_places(entry: str) -> tuple[AllowedPlaces, ...]:
    found = _ENTRY.fullmatch(entry)
    port = int(found["port"]) if found is not None and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65_535):
        raise ValueError(
            f"{entry}: write a network, an address or a host's name, such as 10.1.0.0/16 or db:5432"
        )
    at = found["six"] or found["other"]
    if at == LOOPBACK and found["length"] is None:
        return tuple(AllowedPlaces(network=ip_network(one), port=port) for one in ("127.0.0.0/8", "::1/128"))
    try:
        return (AllowedPlaces(network=ip_network(f"{at}{found['length'] or ''}"), port=port),)
    except ValueError:
        if found["length"] or found["six"] or not _HOST.fullmatch(at) or at.rpartition(".")[2].isdigit():
            raise ValueError(f"{entry}: this is no network, no address and no host's name") from None
    return (AllowedPlaces(host=at, port=port),)
