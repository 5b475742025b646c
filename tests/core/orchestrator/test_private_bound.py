"""The operator's list of private places that tenants may open (P8)."""

import pytest

from orchestrator.core.policy.private_hosts import bound_covers, read_bound
from tests.proves import proves


@proves("P8", part="what the operator lets tenants open")
@pytest.mark.parametrize(
    ("text", "host", "port", "address", "covered"),
    [
        ("loopback", "localhost", 80, "127.0.0.1", True),
        ("loopback", "localhost", 80, "::1", True),
        ("loopback", "a.internal", 80, "127.8.8.8", True),
        ("loopback", "a.internal", 80, "::ffff:127.0.0.1", True),
        ("loopback", "a.internal", 80, "10.0.0.1", False),
        ("", "localhost", 80, "127.0.0.1", False),
        (" , ", "localhost", 80, "127.0.0.1", False),
        ("10.1.0.0/16", "a.internal", 80, "10.1.2.3", True),
        ("10.1.0.0/16", "a.internal", 80, "10.2.2.3", False),
        ("10.1.0.0/16:443", "a.internal", 443, "10.1.2.3", True),
        ("10.1.0.0/16:443", "a.internal", 80, "10.1.2.3", False),
        ("10.1.2.3:8443", "10.1.2.3", 8443, "10.1.2.3", True),
        ("[fd00::]/8", "a.internal", 80, "fd12::1", True),
        ("[fd00::1]:80", "a.internal", 81, "fd00::1", False),
        ("db.internal:5432", "db.internal", 5432, "10.9.9.9", True),
        ("DB.internal", "db.internal", 1, "10.9.9.9", True),
        ("db.internal", "x.db.internal", 5432, "10.9.9.9", False),
        ("loopback, db.internal", "db.internal", 5432, "10.9.9.9", True),
    ],
)
def test_a_bound_covers_what_it_names_and_nothing_else(
    text: str, host: str, port: int, address: str, covered: bool
) -> None:
    assert bound_covers(read_bound(text), host, port, address) is covered


@pytest.mark.parametrize(
    "text",
    [
        "http://a",
        "a:0",
        "a:70000",
        "10.0.0.1/8",
        "10.0.0.300",
        "a b",
        "*",
        "[::1",
        "a/8",
        "loopback/8",
        "fd00::1",
    ],
)
def test_an_entry_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write a network|no network"):
        read_bound(text)
