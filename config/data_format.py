"""The format of stored data: a number in each data folder and in each database (docs/operations.md).

A release reads one format. What has another one is refused before anything in it is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

FORMAT: Final = 1
# Format 0 is everything from before there was a number.
READ_BY: Final = {0: "commit c48d17ff of Interlock"}
FORMAT_FILE: Final = "format"
# A folder with one of these files was used by a start.
_USED: Final = ("secrets.json", "servers.json")
_TABLES: Final = """
SELECT to_regclass('config_data_format') IS NOT NULL, to_regclass('django_migrations') IS NOT NULL
"""
_NUMBER: Final = "SELECT number FROM config_data_format"
_MIGRATED: Final = "SELECT EXISTS (SELECT FROM django_migrations)"
_WRITE: Final = f"""
CREATE TABLE config_data_format (number integer NOT NULL);
INSERT INTO config_data_format VALUES ({FORMAT});
GRANT SELECT ON config_data_format TO interlock_app, interlock_auditor;
"""  # noqa: S608 - a number of this module


class Cursor(Protocol):
    """A cursor of Django or of psycopg."""

    def execute(self, query: Any, /) -> Any: ...
    def fetchone(self) -> Any: ...


def read_folder_format(folder: Path) -> int | None:
    """Return the format of a data folder; None if it is new.

    Raises: ValueError if its file holds no number.
    """
    path = folder / FORMAT_FILE
    try:
        text = path.read_text()
    except FileNotFoundError:
        return 0 if any((folder / name).exists() for name in _USED) else None
    if not text.strip().isdecimal():
        message = f"{path} holds no number."
        raise ValueError(message)
    return int(text)


def read_database_format(cursor: Cursor) -> int | None:
    """Return the format of a database; None if nothing was migrated in it yet."""
    numbered, migrated = _ask(cursor, _TABLES)
    if numbered:
        return int(_ask(cursor, _NUMBER)[0])
    return 0 if migrated and _ask(cursor, _MIGRATED)[0] else None


def write_database_format(cursor: Cursor) -> None:
    """Write this release's format into a new database, as its owner."""
    cursor.execute(_WRITE)


def explain_folder_refusal(folder: Path) -> str | None:
    """Return why this release does not start on a data folder; None if it does.

    Raises: ValueError if the folder's file of the format holds no number.
    """
    if (found := read_folder_format(folder)) in {None, FORMAT}:
        return None
    return f"{folder} {_describe(found)} Set INTERLOCK_DATA_DIR to another folder to start anew."


def explain_database_refusal(cursor: Cursor, name: str) -> str | None:
    """Return why this release does not work on a database, which is called by `name`; None if it does."""
    if (found := read_database_format(cursor)) in {None, FORMAT}:
        return None
    return (
        f"Database {name} {_describe(found)} Let DATABASE_URL and DATABASE_OWNER_URL name a new database, or"
        " set INTERLOCK_DATA_DIR to a new folder and leave them out: a start then makes a database there."
    )


def _ask(cursor: Cursor, query: str) -> Any:
    cursor.execute(query)
    return cursor.fetchone()


def _describe(found: int | None) -> str:
    reader = READ_BY.get(found or 0, "a later release of Interlock")
    return (
        f"has data format {found}, which {reader} reads. This release reads format {FORMAT} and changed"
        " nothing in it."
    )
