"""A first start is measured with no key and no network: what the measurement puts aside."""

import socket
from pathlib import Path

import pytest

from bench.isolated_env import bare, copied, no_way_out, reaches_out
from tests.proves import proves


@proves("R-API-10", part="a first start without a key")
def test_neither_a_variable_nor_a_file_of_settings_reaches_the_house(tmp_path: Path) -> None:
    tree = tmp_path / "given"
    (tree / "config").mkdir(parents=True)
    (tree / "manage.py").write_text("")
    (tree / ".env").write_text("OPENAI_API_KEY=secret")
    around = {"PATH": "/bin", "OPENAI_API_KEY": "secret", "INTERLOCK_MODEL": "x", "DATABASE_URL": "y"}
    place = copied(tmp_path / "own", tree)
    assert bare(around) == {"PATH": "/bin"}
    assert sorted(one.name for one in place.iterdir()) == ["config", "manage.py"]


@proves("R-API-10", part="a first start without a network")
def test_a_place_apart_has_this_machine_and_no_other() -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    with no_way_out() as apart:
        if not apart:
            pytest.skip("the kernel lets this account make no network")
        assert not reaches_out()
        with socket.create_server(("127.0.0.1", 0)) as here:
            socket.create_connection(here.getsockname(), timeout=5).close()
    assert Path("/proc/thread-self/ns/net").readlink() == before
