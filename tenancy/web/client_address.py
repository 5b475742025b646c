"""The address and the browser that a request came from (R-SEC-11)."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest

from tenancy.core.reach import Address, read_address
from tenancy.sign_in_models import BROWSER_LENGTH


class Visitor(NamedTuple):
    """The other end of a request. `address` is None where it cannot be told, `browser` what it calls
    itself."""

    address: Address | None
    browser: str


def client_address(peer: str, forwarded: str) -> Address | None:
    """The address of the client; None where it cannot be told.

    `peer` is the other end of the connection, `forwarded` its `X-Forwarded-For`. Without trusted proxies
    (`INTERLOCK_PROXIES`) the header is anybody's word and is not read. With some, the entry that the
    outermost of them wrote counts; a request with fewer entries did not come through all of them.
    """
    proxies: int = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    if proxies == 0:
        return read_address(peer)
    entries = forwarded.split(",")
    return read_address(entries[-proxies]) if len(entries) >= proxies else None


def visitor_of(request: HttpRequest) -> Visitor:
    """Where a request came from."""
    address = client_address(
        request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_X_FORWARDED_FOR", "")
    )
    return Visitor(address, request.META.get("HTTP_USER_AGENT", "")[:BROWSER_LENGTH])
