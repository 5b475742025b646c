"""Cookie that identifies a browser in which a person has signed in (R-SEC-11).

The cookie contains a signed random secret; the database stores its digest for each person who signed in with
the browser. The cookie gives no access: it only shows that a sign-in attempt is not a stranger's.
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
    """Return the secret in the request's cookie; None without a cookie with a valid signature."""
    try:
        found = signing.loads(request.COOKIES.get(NAME, ""), salt=SALT, max_age=AGE_SECONDS)
    except signing.BadSignature:
        return None
    return found if isinstance(found, str) else None


def fresh_device() -> str:
    """Return a new secret for a browser without one."""
    return secrets.token_urlsafe(32)


def digest_of(device: str) -> bytes:
    """Return the digest of the secret, which the database stores."""
    return sha256(device.encode()).digest()


def set_device(response: HttpResponse, device: str) -> None:
    """Set the browser's cookie, signed now."""
    response.set_cookie(
        NAME, signing.dumps(device, salt=SALT), max_age=AGE_SECONDS, httponly=True, samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip
