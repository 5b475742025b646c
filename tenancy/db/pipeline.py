"""Several statements in one trip to the server, on the hot path (docs/discussions.md).

psycopg's own pipeline goes through a cursor, a queue and a look at the socket for each statement; here they
are sent at once and read until the server has done them all, on libpq's calls as psycopg wraps them.

Plans are kept under names of our own. psycopg gives up all plans of a connection after a rollback, ours too,
and says so to nobody: the next trip then fails with `GONE`, forgets the names, and is to be made again.
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

# A connection keeps so many statements prepared; the shapes of a run's commits are a few dozen.
KEPT = 400
# SQLSTATE of a statement that is prepared no more.
GONE = "26000"
_BAD = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)
_READ, _BOTH = 1, 3
_READY_R = 1
Rows = list[tuple[Any, ...]]


class PreparedStatementsLost(Exception):
    """What was prepared is so no more: nothing was written, and the same again will do."""


class Statement(NamedTuple):
    """One statement with `$1` places and the values for them. `prepared`: keep its plan on the connection."""

    statement: bytes
    values: Sequence[object] = ()
    prepared: bool = False


BEGIN, COMMIT = Statement(b"BEGIN"), Statement(b"COMMIT")


class _Around(NamedTuple):
    """What psycopg has to know of a connection to write values for it. Whoever keeps one keeps no
    connection."""

    adapters: AdaptersMap
    connection: "psycopg.Connection[Any]"


@dataclass(slots=True)
class _Kept:
    """What a connection keeps from trip to trip: the statements prepared on it, by text and types, and how
    values are written and read there."""

    adapting: Adapting
    names: dict[tuple[bytes, tuple[int, ...]], bytes] = field(default_factory=dict)
    given: int = 0

    def fresh(self) -> bytes:
        """A name that no statement of the connection has had."""
        self.given += 1
        return b"interlock_%d" % self.given


_KEPT: "WeakKeyDictionary[psycopg.Connection[Any], _Kept]" = WeakKeyDictionary()


def execute_pipeline(
    connection: "psycopg.Connection[Any]", sayings: Sequence[Statement]
) -> tuple[list[Rows], psycopg.Error | None]:
    """Send the statements in order; the rows of each that succeeded, and the error of the one that did not.

    Nothing after a failing statement is executed. Values are bound by the server and rows come in the binary
    form. Raises OperationalError where the connection is lost: what had been executed by then is unknown.
    """
    kept = _KEPT.get(connection)
    if kept is None:
        kept = _KEPT[connection] = _Kept(Transformer(_Around(connection.adapters, proxy(connection))))
    adapting, pgconn = kept.adapting, connection.pgconn
    with connection.lock:
        # First of all: a value that cannot be written is nobody's fault but its own.
        bound = [_bind_values(adapting, saying) for saying in sayings]
        pgconn.enter_pipeline_mode()
        try:
            marks = [_send_statement(pgconn, kept, *one) for one in zip(sayings, bound, strict=True)]
            pgconn.pipeline_sync()
            results = iter(connection.wait(_receive_results(pgconn)))
            pgconn.exit_pipeline_mode()
        except BaseException:
            # Answers that nobody read would be taken for those of the next statement.
            pgconn.finish()
            raise
        answers, failed = _read_results(kept, marks, results)
        # It would keep what came until something comes again.
        adapting.set_pgresult(None)
    if failed is None:
        return answers, None
    error = errors.error_from_result(failed, encoding=connection.info.encoding)
    if error.sqlstate == GONE:
        kept.names.clear()
    return answers, error


Mark = tuple[tuple[bytes, tuple[int, ...]], bytes] | None


class _Bound(NamedTuple):
    """The values of a statement as they are sent."""

    values: Sequence[Any]
    types: tuple[int, ...]
    formats: Sequence[Format]


def _bind_values(adapting: Adapting, saying: Statement) -> _Bound:
    if not saying.values:
        return _Bound((), (), ())
    values = adapting.dump_sequence(saying.values, list(repeat(PyFormat.AUTO, len(saying.values))))
    return _Bound(values, adapting.types or (), list(adapting.formats or ()))


def _send_statement(pgconn: PGconn, kept: _Kept, saying: Statement, bound: _Bound) -> Mark:
    """Hand a statement to libpq; what will be known as prepared if the server takes it."""
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
    """Everything the server says up to the end of the trip."""
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
    """The rows of each statement, up to the result of one that failed."""
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
