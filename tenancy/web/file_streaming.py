"""Files that are longer than memory, sent piece by piece under either kind of server."""

import csv
from collections.abc import AsyncIterator, Iterable, Iterator
from io import StringIO
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

# What a spreadsheet would take for the beginning of a formula.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_file(
    request: HttpRequest, name: str, pieces: Iterable[Iterable[Iterable[Any]]]
) -> StreamingHttpResponse:
    """A CSV file of rows that come in pieces; each piece is read when the one before was sent.

    A text that a spreadsheet would run as a formula has an apostrophe before it; numbers are left alone.
    """
    texts = (_format_csv_rows(rows) for rows in pieces)
    body = _to_async_iterator(texts) if isinstance(request, ASGIRequest) else texts
    answer = StreamingHttpResponse(body, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def escape_csv_cell(value: object) -> object:
    """A value as a cell that no spreadsheet runs."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _format_csv_rows(rows: Iterable[Iterable[Any]]) -> str:
    written = StringIO(newline="")
    csv.writer(written).writerows([escape_csv_cell(value) for value in row] for row in rows)
    return written.getvalue()


async def _to_async_iterator(texts: Iterator[str]) -> AsyncIterator[str]:
    """The texts, each made in the request's own thread: the database is asked there."""
    following = sync_to_async(lambda: next(texts, None))
    while (text := await following()) is not None:
        yield text
