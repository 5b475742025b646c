"""What is refused as expected is logged in one line, without a traceback (R-SEC-7)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from config.observability import logs
from tests.conftest import House
from tests.proves import proves


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """The log of this process as it would be written."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", written)
        logs.configure_logging(style="json", level="INFO")
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)


def loud(written: StringIO) -> list[dict[str, Any]]:
    """The lines of warnings and worse."""
    found = [json.loads(line) for line in written.getvalue().splitlines()]
    return [line for line in found if line["level"] not in {"debug", "info"}]


def test_finding_21_served_request_is_one_line(house: House, lines: StringIO) -> None:
    assert Client().get("/account/login/").status_code == 200
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(line["event"], line["code"]) for line in written if "request" in line] == [
        ("request_finished", 200)
    ]


MANY = "&".join(f"a{n}=1" for n in range(1_100))


@proves("R-SEC-7", part="refusals in the log")
@pytest.mark.parametrize(
    ("method", "address", "kind", "reason"),
    [
        ("GET", "/account/login/?x=%00", "", "BadRequest"),
        ("GET", "/run%00s", "", "BadRequest"),
        ("GET", f"/account/login/?{MANY}", "", "TooManyFieldsSent"),
        ("POST", "/account/login/", "multipart/form-data; boundary=", "MultiPartParserError"),
        ("GET", "/api/v1/runs", "", None),
        ("GET", "/api/v1/nothing", "", None),
    ],
)
def test_refused_request_is_one_line_with_its_reason(
    house: House, lines: StringIO, method: str, address: str, kind: str, reason: str | None
) -> None:
    answer = Client(raise_request_exception=False).generic(method, address, b"xx", kind)
    assert 400 <= answer.status_code < 500
    (line,) = loud(lines)
    assert (line["event"], line["code"], line.get("refused")) == (
        "request_finished",
        answer.status_code,
        reason,
    )
    assert "Traceback" not in lines.getvalue()


def test_foreign_host_is_one_line_without_a_traceback(house: House, lines: StringIO) -> None:
    answer = Client(raise_request_exception=False).get("/", headers={"host": "evil.example"})
    assert answer.status_code == 400
    (line,) = loud(lines)
    assert "evil.example" in line["event"]
    assert "Traceback" not in lines.getvalue()


def test_fault_of_ours_keeps_its_traceback(lines: StringIO) -> None:
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        logging.getLogger("django.request").exception("Internal Server Error", extra={"status_code": 500})
    assert "Traceback" in lines.getvalue()
