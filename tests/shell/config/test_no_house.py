"""A command that finds no running house says so in one sentence (finding 20)."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from config.env import SERVERS_FILE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
OURS = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a second terminal, whose data folder is this one."""
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env=environment | {"INTERLOCK_DATA_DIR": str(folder)},
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("left", [False, True], ids=["never up", "ended by force"])
def test_finding_20_a_command_without_a_running_house_says_what_to_do(tmp_path: Path, left: bool) -> None:
    if left:
        gone = f"postgresql://interlock_app:x@/interlock?host={tmp_path}/gone"
        (tmp_path / SERVERS_FILE).write_bytes(orjson.dumps({"DATABASE_URL": gone}))
    done = command(tmp_path, "key", "create", "--tenant", "demo", "--role", "client")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"No running Interlock was found by {tmp_path}.")
    assert "INTERLOCK_DATA_DIR" in line
