"""Removes a secret from the answer of the service that it was sent to (M16, W8).

No answer may carry a secret into a prompt or a trace.
"""

import json
from base64 import b64encode
from html import escape
from urllib.parse import quote, quote_plus

HIDDEN = b"[secret]"


def without_secret(text: bytes, secret: str, *, cut: bool = False, by: bytes = HIDDEN) -> bytes:
    """Return the text without the secret, in plain form or any spelling of an echo.

    `cut`: the text may end in the middle of the secret; a beginning of the secret at the end is removed,
    too. `by` replaces the secret.
    """
    if not secret:
        return text
    spelt = _list_secret_encodings(secret)
    for form in spelt:
        text = text.replace(form, by)
    return _without_beginning(text, spelt) if cut else text


def _list_secret_encodings(secret: str) -> tuple[bytes, ...]:
    """Return the encodings of a secret, longest first: a shorter one may be part of a longer one."""
    quoted = json.dumps(secret)[1:-1]
    twice = json.dumps(quoted)[1:-1]
    found = {
        secret, quoted, twice, quoted.replace("/", "\\/"), quote(secret, safe=""), quote(secret),
        quote_plus(secret), escape(secret), b64encode(secret.encode()).decode().rstrip("="),
    }  # fmt: skip
    return tuple(sorted((form.encode() for form in found), key=lambda form: (-len(form), form)))


def _without_beginning(text: bytes, spelt: tuple[bytes, ...]) -> bytes:
    for form in spelt:
        for length in range(min(len(form) - 1, len(text)), 0, -1):
            if text.endswith(form[:length]):
                return text[:-length]
    return text
