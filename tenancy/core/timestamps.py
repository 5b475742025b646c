"""A moment as a text from outside gives it."""

from datetime import UTC, datetime


def read_moment(text: str) -> datetime:
    """The moment that an ISO 8601 text with a zone names, in UTC. Raises ValueError for what names none."""
    return in_utc(datetime.fromisoformat(text))


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC: Python knows offsets that PostgreSQL refuses. Raises ValueError where it has no
    zone, or lies outside the years that there are."""
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time outside the years that there are") from None
