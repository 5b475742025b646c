"""Time zones that a person may choose."""

from zoneinfo import available_timezones

AREAS = (
    "Africa/",
    "America/",
    "Antarctica/",
    "Asia/",
    "Atlantic/",
    "Australia/",
    "Europe/",
    "Indian/",
    "Pacific/",
)
_KNOWN = frozenset(available_timezones())
ZONES = ("UTC", *sorted(name for name in _KNOWN if name.startswith(AREAS)))


def is_known_time_zone(name: str) -> bool:
    """Return whether there is a time zone of this name."""
    return name in _KNOWN
