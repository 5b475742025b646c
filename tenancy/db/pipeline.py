"""Several statements in one round trip to the server, for the hot path (docs/decisions/libpq-pipeline.md).

psycopg's own pipeline mode uses a cursor, a queue and a socket check for each statement. This module sends
all statements at once and reads until the server has executed them, with libpq's calls as psycopg wraps them.
With psycopg's pipeline a commit takes 1.19 times the processor time and is 1.11 times as long; `python -m
bench pipeline` measures that, and fails once the difference is less than a tenth.

Plans are stored under names of this module. After a rollback psycopg discards all plans of a connection,
including those of this module, without a notification. The next round trip then fails with `GONE`, which
clears the names, and has to be repeated.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

import psycopg
from psycopg import errors
from psycopg.abc import Transformer as Adapting
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

# Maximum of prepared statements per connection; a run's commits use a few dozen different statements.
KEPT = 400
# SQLSTATE of a prepared statement that no longer exists.
GONE = "26000"
_BAD = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)
_READ, _BOTH = 1, 3
_READY_R = 1
Rows = list[tuple[Any, ...]]


class PreparedStatementsLost(Exception):
    """What was prepared is so no more: nothing was written, and the same again will do."""


class Statement(NamedTuple):
    """One statement with `$1` placeholders and their values. `prepared`: keep its plan on the connection."""

    statement: bytes
    values: Sequence[object] = ()
    prepared: bool = False


BEGIN, COMMIT = Statement(b"BEGIN"), Statement(b"COMMIT")


class _Around(NamedTuple):
    """The attributes of a connection that psycopg needs to adapt values for it.

    An object that holds a `_Around` does not keep the connection alive.
    """

    adapters: AdaptersMap
    connection: "psycopg.Connection[Any]"


@dataclass(slots=True)
class _Kept:
    """State of a connection between round trips.

    The state consists of the statements prepared on the connection, by text and types, and of the adaptation
    of values.
    """

    adapting: Adapting
    names: dict[tuple[bytes, tuple[int, ...]], bytes] = field(default_factory=dict)
    given: int = 0

    def fresh(self) -> bytes:
        """Return a statement name that has not been used on the connection."""
        self.given += 1
        return b"interlock_%d" % self.given


_KEPT: "WeakKeyDictionary[psycopg.Connection[Any], _Kept]" = WeakKeyDictionary()


def execute_pipeline(
    connection: "psycopg.Connection[Any]", sayings: Sequence[Statement]
) -> tuple[list[Rows], psycopg.Error | None]:
    """Send the statements in order; return the rows of the successful ones and the error of a failed one.

    Statements after a failed one are not executed. Values are bound by the server and rows are received in
    binary format.

    Raises: OperationalError if the connection is lost; it is then unknown which statements were executed.
    """
    kept = _KEPT.get(connection)
    if kept is None:
        kept = _KEPT[connection] = _Kept(Transformer(_Around(connection.adapters, proxy(connection))))
    adapting, pgconn = kept.adapting, connection.pgconn
    with connection.lock:
        # Before anything is sent: a value that cannot be adapted must not break the connection.
        bound = [_bind_values(adapting, saying) for saying in sayings]
        pgconn.enter_pipeline_mode()
        try:
            marks = [_send_statement(pgconn, kept, *one) for one in zip(sayings, bound, strict=True)]
            pgconn.pipeline_sync()
            results = iter(connection.wait(_receive_results(pgconn)))
            pgconn.exit_pipeline_mode()
        except BaseException:
            # Unread results would be taken for those of the next statement.
            pgconn.finish()
            raise
        answers, failed = _read_results(kept, marks, results)
        # Otherwise the transformer would keep the last result in memory until the next one.
        adapting.set_pgresult(None)
    if failed is None:
        return answers, None
    error = errors.error_from_result(failed, encoding=connection.info.encoding)
    if error.sqlstate == GONE:
        kept.names.clear()
    return answers, error


Mark = tuple[tuple[bytes, tuple[int, ...]], bytes] | None


class _Bound(NamedTuple):
    """The values of a statement in the form in which they are sent."""

    values: Sequence[Any]
    types: tuple[int, ...]
    formats: Sequence[Format]


def _bind_values(adapting: Adapting, saying: Statement) -> _Bound:
    if not saying.values:
        return _Bound((), (), ())
    values = adapting.dump_sequence(saying.values, list(repeat(PyFormat.AUTO, len(saying.values))))
    return _Bound(values, adapting.types or (), list(adapting.formats or ()))


def _send_statement(pgconn: PGconn, kept: _Kept, saying: Statement, bound: _Bound) -> Mark:
    """Pass a statement to libpq; return the key and name of a newly prepared statement, else None.

    Key and name are stored once the server has accepted the statement.
    """
    values, types, formats = bound
    key = (saying.statement, types)
    name = kept.names.get(key)
    if name is None and (not saying.prepared or len(kept.names) >= KEPT):
        pgconn.send_query_params(saying.statement, values, types, formats, Format.BINARY)
        return None
    if name is not None:
        pgconn.send_query_prepared(name, values, formats, Format.BINARY)
        return None
    name = kept.fresh()
    pgconn.send_prepare(name, saying.statement, types)
    pgconn.send_query_prepared(name, values, formats, Format.BINARY)
    return key, name


def _receive_results(pgconn: PGconn) -> Generator[Any, Any, list[PGresult]]:
    """Receive all results of the server up to the end of the round trip."""
    while pgconn.flush():
        if (yield _BOTH) & _READY_R:
            pgconn.consume_input()
    results: list[PGresult] = []
    while True:
        while pgconn.is_busy():
            if (yield _READ) & _READY_R:
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            continue
        if result.status == ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)


def _read_results(
    kept: _Kept, marks: Sequence[Mark], results: Iterator[PGresult]
) -> tuple[list[Rows], PGresult | None]:
    """Return the rows of each statement, and the result of the first failed one if there is one."""
    answers: list[Rows] = []
    for mark in marks:
        if mark is not None:
            preparing = next(results)
            if preparing.status in _BAD:
                return answers, preparing
            kept.names[mark[0]] = mark[1]
        result = next(results)
        if result.status in _BAD:
            return answers, result
        answers.append(_decode_rows(kept.adapting, result) if result.ntuples else [])
    return answers, None


def _decode_rows(adapting: Adapting, result: PGresult) -> Rows:
    adapting.set_pgresult(result)
    return adapting.load_rows(0, result.ntuples, tuple)
