"""The address that a request came from, for keys that hold for some addresses alone (R-SEC-11)."""

from django.conf import settings

from tenancy.core.reach import Address, read_address


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
