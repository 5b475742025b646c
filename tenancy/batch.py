"""Many rows for many tables in one statement (SPEED.md).

Each statement costs the client as much as all the values in it, so a commit gathers what it writes and
sends it at once: `WITH … AS (INSERT …), … AS (INSERT …) UPDATE …`. The parts see nothing of one another and
share their fate.
"""

from collections.abc import Sequence
from itertools import chain
from types import TracebackType
from typing import Any, Self

import psycopg

# Statements of more values are rare, and each of them differs: they are not worth preparing.
OFTEN = 400
# PostgreSQL takes 65 535 values in a statement.
AT_ONCE = 30_000
# Text, shared values, rows, columns of its own, ending.
Part = tuple[str, int, int, int, str]


class Batch:
    """Parts of one statement, under psycopg's `%s`; sent at the end of the `with` unless it failed.

    The values of a part are bound by the server. A part's text is ours, never a user's.
    """

    def __init__(self, cursor: "psycopg.Cursor[Any]") -> None:
        self._connection = cursor.connection
        self._parts: list[Part] = []
        self._values: list[object] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.send()

    def insert(
        self, into: str, rows: Sequence[Sequence[object]], then: str = "", *, shared: Sequence[object] = ()
    ) -> None:
        """Add rows that all begin with the `shared` values; `into` ends with VALUES, `then` may be an ON
        CONFLICT."""
        if not rows:
            return
        if len(self._values) + len(rows) * len(rows[0]) > AT_ONCE:
            self.send()
        self._parts.append((into, len(shared), len(rows), len(rows[0]), then))
        self._values.extend(shared)
        self._values.extend(chain.from_iterable(rows))

    def add(self, statement: str, values: Sequence[object]) -> None:
        """Add a statement of its own, with one `%s` for each value."""
        self._parts.append((statement, 0, 0, len(values), ""))
        self._values.extend(values)

    def send(self) -> None:
        """Execute what was gathered; inside a pipeline this only queues it."""
        if not self._parts:
            return
        statement = _statement(tuple(self._parts))
        psycopg.RawCursor(self._connection).execute(
            statement, self._values, prepare=len(self._values) <= OFTEN
        )
        self._parts, self._values = [], []


def _row(first: int, shared: int, own: int, columns: int) -> str:
    places = chain(range(first, first + shared), range(own, own + columns))
    return "(" + ", ".join(f"${place}" for place in places) + ")"


def _text(part: Part, first: int) -> str:
    text, shared, rows, columns, then = part
    if rows:
        own = first + shared
        return (
            text + ", ".join(_row(first, shared, own + row * columns, columns) for row in range(rows)) + then
        )
    pieces = text.split("%s")
    numbered = chain.from_iterable((piece, f"${first + n}") for n, piece in enumerate(pieces[:-1]))
    return "".join(numbered) + pieces[-1]


_KNOWN: dict[tuple[Part, ...], bytes] = {}


def _statement(parts: tuple[Part, ...]) -> bytes:
    known = _KNOWN.get(parts)
    if known is not None:
        return known
    texts, first = [], 1
    for part in parts:
        texts.append(_text(part, first))
        first += part[1] + max(part[2], 1) * part[3]
    *others, last = texts
    ahead = ", ".join(f"part{n} AS ({text})" for n, text in enumerate(others))
    statement = (f"WITH {ahead} {last}" if others else last).encode()
    if first <= OFTEN and len(_KNOWN) < OFTEN:
        _KNOWN[parts] = statement
    return statement
