"""The one table from an error's code to its HTTP status. A test refuses an error class that is missing
here.
"""

from __future__ import annotations

from tenancy.core.errors import InterlockError

STATUS: dict[str, int] = {}
UNLISTED = 409


def status_of(error: InterlockError) -> int:
    """The HTTP status of an error: its own code's, else that of the nearest ancestor listed, else 409."""
    for kind in type(error).__mro__:
        if (code := getattr(kind, "code", None)) in STATUS:
            return STATUS[code]
    return UNLISTED
