"""Client address and browser of a request (R-SEC-11)."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest

from tenancy.core.reach import Address, read_address
from tenancy.sign_in_models import BROWSER_LENGTH


class Visitor(NamedTuple):
    """The client of a request.

    `address` is None if it is unknown; `browser` is the User-Agent.
    """

    address: Address | None
    browser: str


def client_address(peer: str, forwarded: str) -> Address | None:
    """Return the address of the client; None if it is unknown.

    `peer` is the remote end of the connection, `forwarded` its `X-Forwarded-For`. Without trusted proxies
    (`INTERLOCK_PROXIES`) any client can forge the header, so it is ignored. With trusted proxies, the entry
    that the outermost one wrote counts; a request with fewer entries did not pass through all of them.
    """
    proxies: int = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    if proxies == 0:
        return read_address(peer)
    entries = forwarded.split(",")
    return read_address(entries[-proxies]) if len(entries) >= proxies else None


def visitor_of(request: HttpRequest) -> Visitor:
    """Return the client address and the browser of a request."""
    address = client_address(
        request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_X_FORWARDED_FOR", "")
    )
    return Visitor(address, request.META.get("HTTP_USER_AGENT", "")[:BROWSER_LENGTH])
