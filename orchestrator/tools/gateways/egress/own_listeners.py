"""The listeners of this deployment's own servers, which no tenant's list may open (P8, W3).

They are compared by resolved address and port.
"""

import socket
import time
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from orchestrator.core.policy.private_hosts import plain_address
from orchestrator.core.tools.egress_policy import Listener

REMEMBERED_SECONDS: Final = 60


def own_listeners() -> tuple[Listener, ...]:
    """Return the listeners of the web server, metrics, database, broker and demo company.

    They come from this deployment's settings. Waits for names that were not resolved within the last
    minute.
    """
    return tuple(_build_listener(name, host, port) for name, host, port in _list_own_endpoints())


def is_here(address: str) -> bool:
    """Return whether an address belongs to this machine: a socket can be bound to no other address."""
    found = plain_address(ip_address(address))
    if found.is_loopback or found.is_unspecified:
        return True
    family = socket.AF_INET if isinstance(found, IPv4Address) else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(found), 0))
        except OSError:
            return False
    return True


def _list_own_endpoints() -> Iterator[tuple[str, str, int]]:
    """Yield name, host and port of each listener; an empty host is this machine."""
    yield "web server", "", settings.INTERLOCK_PORT
    for port in (settings.INTERLOCK_METRICS_PORT, settings.INTERLOCK_WEB_METRICS_PORT):
        if port is not None:
            yield "metrics", "", port
    for entry in settings.DATABASES.values():
        yield from _of_database(str(entry.get("HOST") or ""), str(entry.get("PORT") or ""))
    broker = urlsplit(settings.REDIS_URL)
    if broker.scheme != "unix":
        yield "broker", broker.hostname or "", broker.port or 6379
    if settings.INTERLOCK_DEMO_URL:
        demo = urlsplit(settings.INTERLOCK_DEMO_URL)
        yield "demo company", demo.hostname or "", demo.port or (443 if demo.scheme == "https" else 80)


def _of_database(hosts: str, ports: str) -> Iterator[tuple[str, str, int]]:
    """Parse PostgreSQL's form: several hosts separated by commas; a folder is a local socket.

    The embedded server listens at its socket only.
    """
    named, of_each = hosts.split(","), ports.split(",")
    for place, host in enumerate(named):
        port = int((of_each[place] if len(of_each) == len(named) else of_each[0]) or 5432)
        at_socket = not host or host.startswith(("/", "@"))
        if not (at_socket and settings.INTERLOCK_EMBEDDED):
            yield "database", "" if at_socket else host, port


def _build_listener(name: str, host: str, port: int) -> Listener:
    addresses = _resolve_addresses(host, int(time.monotonic() // REMEMBERED_SECONDS)) if host else ()
    here = not host or any(is_here(one) for one in addresses)
    return Listener(name=name, port=port, addresses=addresses, here=here)


@lru_cache(maxsize=64)
def _resolve_addresses(host: str, _minute: int) -> tuple[str, ...]:
    """Return the addresses of a host; empty where it cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    plain = (str(plain_address(ip_address(str(entry[4][0]).partition("%")[0]))) for entry in found)
    return tuple(dict.fromkeys(plain))
