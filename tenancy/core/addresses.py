"""E-mail addresses as people are known by them."""

from tenancy.core.errors import InvalidInput


def normalize_email_address(address: str) -> str:
    """The one spelling of an address. Raises InvalidInput where it is not plain ASCII.

    Other letters fold to plain ones (the Kelvin sign to `k`): two people would share a spelling (R-SEC-2).
    """
    if not address.isascii():
        detail = "An e-mail address is written in plain letters (ASCII)."
        raise InvalidInput(errors=[{"pointer": "/email", "code": "invalid", "detail": detail}])
    return address.lower()
