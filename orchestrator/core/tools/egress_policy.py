"""Egress policy: requests are judged by the connected address, not by its name (P8, W3, G3).

A URL is parsed in one strict way, so that no other parser can find another host in it. A host must be one of
the requested origins. The address behind it must be public, unless an admin has named exactly this host and
port.
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Literal
from urllib.parse import urlsplit

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.policy.private_hosts import NAT64, AllowedPlaces, bound_covers, plain_address

LONGEST = 2_000
LONGEST_HOST = 253
PORTS = {"http": 80, "https": 443}
Reach = Literal["public", "private", "never"]
AnyAddress = IPv4Address | IPv6Address

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*")
# Numbers that some parsers accept as an address: 2130706433, 0x7f.1, 017700000001.
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_UNSAFE = re.compile(r"[^\x21-\x7e]|[\\^`{|}<>\"]")
_GLOBAL = IPv6Network("2000::/3")
_UNIQUE_LOCAL = IPv6Network("fc00::/7")
_ISATAP = (0x00005EFE, 0x02005EFE)


class Target(FrozenModel):
    """One address to reach: `host` is a lower-case ASCII name or the plain form of an IP address."""

    scheme: Literal["http", "https"]
    host: str
    port: int

    @property
    def origin(self) -> str:
        """The origin, such as `https://api.example` or `http://[::1]:8080`."""
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{_format_host(self.host)}{port}"

    @property
    def place(self) -> str:
        """The host and port, in the form of an entry of the list of private addresses."""
        return f"{_format_host(self.host)}:{self.port}"

    @property
    def literal(self) -> AnyAddress | None:
        """The IP address if the host is one, else None."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def target_of(url: str) -> Target:
    """Parse the target of a URL.

    Raises: EgressRefused for anything that could be read in two ways.
    """
    if len(url) > LONGEST or _UNSAFE.search(url):
        raise EgressRefused(detail="an address is at most 2,000 plain ASCII characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EgressRefused(detail="this is no address") from error
    if parts.scheme not in PORTS:
        raise EgressRefused(detail="only http and https are spoken")
    if "@" in parts.netloc:
        raise EgressRefused(detail="an address carries no credentials; name a secret instead")
    if parts.fragment or "#" in url:
        raise EgressRefused(detail="an address has no fragment")
    if port == 0 or parts.netloc.endswith(":"):
        raise EgressRefused(detail="this is no port")
    host = _parse_host(parts.netloc)
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Target(scheme=scheme, host=host, port=port if port is not None else PORTS[scheme])


def place_of(text: str) -> str:
    """Normalize an entry of the list of private addresses, `host:port`.

    Raises: EgressRefused.
    """
    target = target_of(f"http://{text}")
    if not re.search(r":[0-9]+\Z", text) or urlsplit(f"http://{text}").path:
        raise EgressRefused(detail="name one host and its port, such as tools.internal:8443")
    if target.literal is not None and reach_of(target.literal) == "never":
        raise EgressRefused(detail=f"{target.host} can never be reached: link-local, multicast or reserved")
    return target.place


def wider_places(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    """Describe each private address that `after` opens and `before` does not, one sentence each."""
    return tuple(f"Tools reach {place}." for place in sorted(set(after) - set(before)))


def reach_of(address: AnyAddress) -> Reach:
    """Return whether an address is public, private (also loopback), or never to be reached.

    An IPv6 address that carries an IPv4 address is judged by the latter. A tunnel to a non-public address is
    never reached.
    """
    if isinstance(address, IPv6Address):
        return _reach_of_six(address)
    if address.is_multicast or address.is_link_local or address.packed[0] == 0 or address.packed[0] >= 240:
        return "never"
    return "public" if address.is_global else "private"


class Listener(FrozenModel):
    """A port on which one of our own servers listens, at these `addresses`.

    If `here` is set, the server listens at every address of this machine.
    """

    name: str
    port: int
    addresses: tuple[str, ...] = ()
    here: bool = False


class EgressPolicy(FrozenModel):
    """The destinations that one caller may reach: exact origins and private places.

    A non-public address is reached only at a `private` host:port that the operator's `bound` covers (None:
    the operator's own settings name it). `listeners` are our own servers, which no list opens at any address.
    """

    origins: tuple[str, ...]
    private: tuple[str, ...] = ()
    bound: tuple[AllowedPlaces, ...] | None = None
    listeners: tuple[Listener, ...] = ()

    def admit(self, target: Target) -> None:
        """Check that the origin is one of the requested ones.

        Raises: EgressRefused.
        """
        if target.origin not in self.origins:
            raise EgressRefused(detail=f"{target.origin} is not the address that was allowed")

    def admit_all(
        self, target: Target, addresses: Iterable[str], *, here: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the addresses of a target if all of them may be connected.

        `here` are the addresses of this machine.

        Raises: EgressRefused if any address is not allowed, or if there is none.
        """
        found = tuple(addresses)
        if not found:
            raise EgressRefused(detail=f"{target.host} has no address")
        for address in found:
            self._admit_address(target, ip_address(address), here=address in here)
        return found

    def _admit_address(self, target: Target, address: AnyAddress, *, here: bool) -> None:
        for one in self.listeners:
            ours = (one.here and here) or str(plain_address(address)) in one.addresses
            if ours and one.port == target.port:
                raise EgressRefused(
                    detail=f"port {target.port} of {address} belongs to Interlock's own {one.name}"
                )
        reach = reach_of(address)
        if reach == "public":
            return
        if reach == "never":
            raise EgressRefused(detail=f"{target.host} leads to {address}, which is never reached")
        if target.place not in self.private:
            raise EgressRefused(
                detail=f"{target.host} leads to {address}, which is not public, and no admin has allowed "
                f"{target.place}"
            )
        if self.bound is not None and not bound_covers(self.bound, target.host, target.port, str(address)):
            raise EgressRefused(
                detail=f"{target.place} leads to {address}, which the operator lets no tenant open"
            )


def _parse_host(netloc: str) -> str:
    """Return the host of an authority in its normal form."""
    if netloc.startswith("["):
        text, _, rest = netloc[1:].partition("]")
        try:
            return str(IPv6Address(text)) if "%" not in text and rest[:1] in ("", ":") else _refuse_host()
        except ValueError:
            return _refuse_host()
    host = netloc.partition(":")[0].lower()
    if not host or len(host) > LONGEST_HOST or not _NAME.fullmatch(host):
        return _refuse_host()
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return host
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise EgressRefused(detail="a number as a host is written as four plain decimals") from None


def _refuse_host() -> str:
    raise EgressRefused(detail="this is no host: write a name in ASCII, or a plain IP address")


def _reach_of_six(address: IPv6Address) -> Reach:
    if address.scope_id is not None or address.teredo is not None:
        return "never"
    if address.ipv4_mapped is not None:
        return reach_of(address.ipv4_mapped)
    inside = address.sixtofour
    if address in NAT64 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        inside = IPv4Address(int(address) & 0xFFFFFFFF)
    if inside is not None:
        return _classify_tunnel(inside)
    if address in _GLOBAL:
        return "public" if address.is_global else "private"
    return "private" if address.is_loopback or address in _UNIQUE_LOCAL else "never"


def _classify_tunnel(inside: IPv4Address) -> Reach:
    """Classify a tunnel by its inner address: a tunnel to a non-public address would evade every list."""
    return "public" if reach_of(inside) == "public" else "never"


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
