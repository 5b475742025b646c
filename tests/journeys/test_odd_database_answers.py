"""A database that makes a change and answers its COMMIT oddly, judged by what stands in its table: nothing is
made twice, and nothing that may have been made is called failed (R-TOOL-9, R-TOOL-14, G6)."""

import struct
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import pytest
from pytest_django import Settings

from tests.conftest import House
from tests.doors.gateways.test_sql import ROLES
from tests.doors.gateways.test_sql import company as company
from tests.doubles.forward import Forward
from tests.doubles.openai_server import OpenAIServer, calls
from tests.factories.foreign import called
from tests.factories.servers import let_in
from tests.factories.world import make_world
from tests.journeys.odd import Service, made_once_after_a_yes
from tests.journeys.test_open_effects import model as model
from tests.proves import proves
from tests.servers import TestServers

READER, WRITER, _ = ROLES
Write = Callable[[bytes], object]


def message(kind: bytes, body: bytes) -> bytes:
    """One message of the protocol."""
    return kind + struct.pack("!i", len(body) + 4) + body


def error(state: bytes, severity: bytes = b"ERROR") -> bytes:
    """An error with this SQLSTATE."""
    fields = b"S" + severity + b"\0V" + severity + b"\0C" + state + b"\0MNo.\0\0"
    return message(b"E", fields)


def well(tag: bytes) -> bytes:
    """What is bound and done, with this tag."""
    return message(b"1", b"") + message(b"2", b"") + message(b"n", b"") + message(b"C", tag + b"\0")


READY = message(b"Z", b"I")
NOTICE = message(b"N", b"SNOTICE\0VNOTICE\0C00000\0M" + b"x" * 60_000 + b"\0\0")


def plain(answer: bytes) -> Any:
    """Speaks these bytes."""
    return lambda _said, write: write(answer)


def hang(_said: bytes, _write: Write) -> None:
    """Says nothing for longer than anybody waits."""
    sleep(20)


ODD: dict[str, Any] = {
    "cut": plain(b""), "half": lambda said, write: write(said[:7]), "hang": hang,
    "noise": plain(b"\x16\x03\x01 no database at all"), "another protocol": plain(b"HTTP/1.1 200 OK\r\n\r\n"),
    "no tag": plain(well(b"") + READY), "another tag": plain(well(b"INSERT 0 1") + READY),
    "no utf-8": plain(well(b"\xff\xfe") + READY),
    "ready at once": plain(READY), "a row": plain(message(b"D", b"\0\1\0\0\0\1x") + READY),
    "copy": plain(message(b"G", b"\0\0\0") + READY),
    "12 MB": plain(NOTICE * 200), "a length of 1 GB": plain(b"C" + struct.pack("!i", 1 << 30)),
    "a negative length": plain(b"C" + struct.pack("!i", -4)),
    "internal error": plain(error(b"XX000") + READY), "out of memory": plain(error(b"53200") + READY),
    "unknown completion": plain(error(b"40003") + READY), "shutdown": plain(error(b"57P01", b"FATAL")),
    "no such state": plain(error(b"?????") + READY),
    "error without fields": plain(message(b"E", b"\0") + READY),
}  # fmt: skip
TELLING = ("cut", "another tag", "internal error")
odd = pytest.mark.parametrize(
    "speaks",
    [
        pytest.param(speaks, id=name, marks=() if name in TELLING else pytest.mark.slow)
        for name, speaks in ODD.items()
    ],
)


@pytest.fixture
def forward(company: TestServers, settings: Settings) -> Iterator[Forward]:
    """A way to the company's database, which has no orders."""
    found = Forward(f"{company.postgres.sockets}/.s.PGSQL.5432")
    at = f"@127.0.0.1:{found.port}/{company.database}?sslmode=disable"
    roles = {"reader": READER, "writer": WRITER}
    settings.INTERLOCK_DATABASES = {
        "company": {name: f"postgresql://{role}:suite{at}" for name, role in roles.items()}
    }
    with company.superuser() as connection:
        connection.execute("TRUNCATE company.told")
    yield found
    found.close()


@proves("G6", part="odd answers of a database, after a yes")
@odd
def test_a_change_of_a_database_that_answers_oddly_is_made_once(
    house: House, company: TestServers, forward: Forward, model: OpenAIServer, speaks: Any
) -> None:
    world = make_world(house)
    let_in(world, "sql", side_effects=5, granted_side_effects=5)
    change = {"source": "company", "statement": "INSERT INTO company.told VALUES ('A-9')"}

    def made() -> int:
        with company.superuser() as connection:
            row = connection.execute("SELECT count(*) FROM company.told").fetchone()
        assert row is not None
        return int(row[0])

    def calm() -> None:
        forward.speaks = None

    forward.speaks = speaks
    ask = calls(called("sql.write", **change, expected_rows=1))
    made_once_after_a_yes(
        Service(
            world=world,
            model=model,
            tool="sql.write",
            goal="Tell company of A-9.",
            ask=ask,
            made=made,
            calm=calm,
        )
    )
