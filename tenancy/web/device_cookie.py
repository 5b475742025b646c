"""The cookie by which a browser is known in which a person has signed in (R-SEC-11).

It holds a random secret, signed; the database holds its digest beside each person who signed in there. It
lets nobody in: it only says that a try to sign in is not a stranger's.
"""

import secrets
from hashlib import sha256
from typing import Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

NAME: Final = "device"
SALT: Final = "interlock.device"
AGE_SECONDS: Final = 180 * 86_400


def device_of(request: HttpRequest) -> str | None:
    """The secret in the request's cookie; None without one that we signed."""
    try:
        found = signing.loads(request.COOKIES.get(NAME, ""), salt=SALT, max_age=AGE_SECONDS)
    except signing.BadSignature:
        return None
    return found if isinstance(found, str) else None


def fresh_device() -> str:
    """A secret for a browser that has none."""
    return secrets.token_urlsafe(32)


def digest_of(device: str) -> bytes:
    """What the database keeps of the secret."""
    return sha256(device.encode()).digest()


def set_device(response: HttpResponse, device: str) -> None:
    """Give the browser its cookie, signed today."""
    response.set_cookie(
        NAME, signing.dumps(device, salt=SALT), max_age=AGE_SECONDS, httponly=True, samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip
