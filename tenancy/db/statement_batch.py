"""Many rows for many tables in one statement (docs/decisions/two-round-trips.md).

Each statement costs the client as much as all the values in it, so a commit gathers what it writes and
sends it at once: `WITH … AS (INSERT …), … AS (UPDATE …) SELECT …`. The parts see nothing of one another and
share their fate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import TracebackType
from typing import Any, NamedTuple, Self

import psycopg
from django.db import connection as django_connection
from django.db import models
from psycopg.pq import TransactionStatus

from tenancy.db.pipeline import COMMIT, GONE, PreparedStatementsLost, Statement, execute_pipeline

# Statements of more values are rare, and each of them differs: they are not worth preparing.
OFTEN = 400
# PostgreSQL takes 65 535 values in a statement.
AT_ONCE = 30_000
# The SQLSTATE of `interlock_refuse_unless`.
REFUSED = "IL001"


class Part(NamedTuple):
    """The shape of one part: `rows` of `columns` values each after the `shared` ones, or (no rows) a
    statement with `columns` places. `touches`: how many rows it must change, None where any number will do.
    """

    text: str
    shared: int
    rows: int
    columns: int
    then: str
    touches: int | None


class RowRefused(Exception):
    """A row did not take its change, so nothing was written."""


@dataclass(slots=True)
class Touched:
    """Which rows a part touched: the `key` of each, once the batch was sent."""

    keys: frozenset[str] = frozenset()


class Batch:
    """Parts of one statement, under psycopg's `%s`; sent at the end of the `with` unless it failed.

    The values of a part are bound by the server. A part's text is ours, never a user's. Not for use inside a
    pipeline.
    """

    def __init__(self, cursor: "psycopg.Cursor[Any]") -> None:
        self._connection = cursor.connection
        self._parts: list[Part] = []
        self._values: list[object] = []
        self._waiting: list[Touched] = []

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
        self._parts.append(Part(into, len(shared), len(rows), len(rows[0]), then, None))
        self._values.extend(shared)
        self._values.extend(chain.from_iterable(rows))

    def row(self, instance: models.Model) -> None:
        """Add a new row as its model would write it, where the model leaves no column to the database."""
        fields = instance._meta.concrete_fields  # noqa: SLF001 - the model's own table
        values = [
            field.get_db_prep_save(field.pre_save(instance, add=True), django_connection) for field in fields
        ]
        self.insert(_build_insert_clause(type(instance)), [values])

    def add(self, statement: str, values: Sequence[object]) -> None:
        """Add a statement of its own, with one `%s` for each value."""
        self._parts.append(Part(statement, 0, 0, len(values), "", None))
        self._values.extend(values)

    def touch(self, statement: str, values: Sequence[object], rows: int) -> Touched:
        """`add` one that must change `rows` rows and ends with `RETURNING … AS key`. After `send` the caller
        looks which came back; `land` refuses where one did not."""
        touched = Touched()
        self._parts.append(Part(statement, 0, 0, len(values), "", rows))
        self._values.extend(values)
        self._waiting.append(touched)
        return touched

    def send(self) -> None:
        """Execute what was gathered."""
        if not self._parts:
            return
        answers, error = execute_pipeline(
            self._connection, [self._build_statement(_build_changed_keys_query, prepared=False)]
        )
        if error is not None:
            raise error
        if self._waiting:
            for touched, keys in zip(self._waiting, answers[0][0], strict=True):
                touched.keys = frozenset(keys.split(" ")) if keys else frozenset()
        self._parts, self._values, self._waiting = [], [], []

    def land(self, question: bytes, values: Sequence[object]) -> list[tuple[Any, ...]] | None:
        """Execute what was gathered, COMMIT, and ask `question` of what then holds: all in one trip.

        The rows of the answer; None where the commit landed and the question failed. Raises RowRefused when a
        touched row did not take its change, PlansGone where the transaction should be made again, and what
        else the database says; nothing is committed then.
        """
        asking = Statement(question, values, prepared=True)
        sayings = [COMMIT, asking]
        if self._parts:
            sayings.insert(
                0, self._build_statement(_build_row_count_guard, prepared=len(self._values) <= OFTEN)
            )
        answers, error = execute_pipeline(self._connection, sayings)
        if error is None:
            return answers[-1]
        if error.sqlstate == REFUSED:
            raise RowRefused
        if self._connection.info.transaction_status == TransactionStatus.IDLE:
            return self._asked_again(asking) if error.sqlstate == GONE else None
        if error.sqlstate == GONE:
            raise PreparedStatementsLost
        raise error

    def _asked_again(self, asking: Statement) -> list[tuple[Any, ...]] | None:
        answers, error = execute_pipeline(self._connection, [asking])
        return answers[0] if error is None else None

    def _build_statement(self, ending: "Ending", *, prepared: bool) -> Statement:
        return Statement(_build_batch_statement(tuple(self._parts), ending), self._values, prepared)


@cache
def _build_insert_clause(model: type[models.Model]) -> str:
    table = model._meta  # noqa: SLF001 - the model's own table
    left = (models.AutoField, models.GeneratedField)
    assert not any(isinstance(field, left) or field.has_db_default() for field in table.concrete_fields)
    columns = ", ".join(f'"{field.column}"' for field in table.concrete_fields)
    return f'INSERT INTO "{table.db_table}" ({columns}) VALUES '  # noqa: S608 - names of ours


def _format_row_placeholders(first: int, shared: int, own: int, columns: int) -> str:
    places = chain(range(first, first + shared), range(own, own + columns))
    return "(" + ", ".join(f"${place}" for place in places) + ")"


def _format_part(part: Part, first: int) -> str:
    if part.rows:
        own = first + part.shared
        starts = range(own, own + part.rows * part.columns, part.columns)
        rows = (_format_row_placeholders(first, part.shared, start, part.columns) for start in starts)
        return part.text + ", ".join(rows) + part.then
    pieces = part.text.split("%s")
    numbered = chain.from_iterable((piece, f"${first + n}") for n, piece in enumerate(pieces[:-1]))
    return "".join(numbered) + pieces[-1]


def _build_changed_keys_query(parts: Sequence[Part]) -> str:
    """The keys of the rows that each touching part changed, as one text each."""
    touching = [n for n, part in enumerate(parts) if part.touches is not None]
    wanted = (f"(SELECT string_agg(key, ' ') FROM part{n})" for n in touching)  # noqa: S608 - numbers
    return f"SELECT {', '.join(wanted)}" if touching else ""


def _build_row_count_guard(parts: Sequence[Part]) -> str:
    """An error where a touching part changed another number of rows than it must."""
    touching = [(n, part.touches) for n, part in enumerate(parts) if part.touches is not None]
    right = " AND ".join(f"(SELECT count(*) FROM part{n}) = {rows}" for n, rows in touching)  # noqa: S608 - numbers
    return f"SELECT interlock_refuse_unless({right})" if touching else ""


Ending = Callable[[Sequence[Part]], str]
_KNOWN: dict[tuple[Ending, tuple[Part, ...]], bytes] = {}


def _build_batch_statement(parts: tuple[Part, ...], ending: Ending) -> bytes:
    known = _KNOWN.get((ending, parts))
    if known is not None:
        return known
    texts, first = [], 1
    for part in parts:
        texts.append(_format_part(part, first))
        first += part.shared + max(part.rows, 1) * part.columns
    main = ending(parts) or texts.pop()
    ahead = ", ".join(f"part{n} AS ({text})" for n, text in enumerate(texts))
    statement = (f"WITH {ahead} {main}" if ahead else main).encode()
    if first <= OFTEN and len(_KNOWN) < OFTEN:
        _KNOWN[ending, parts] = statement
    return statement
