"""A start of Interlock as a reader of the documentation makes it, and the commands that its pages give.

The commands are run as they are written; only the ports are others, for something may listen at theirs.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.isolated_env import bare, copied
from bench.servers import ROOT, parent
from config.devstack.child_process import Account, socket_folder

BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 120.0
END = "--- the block has ended ---"


def shell_blocks(page: str, ports: Mapping[int, int], section: str = "") -> list[str]:
    """The commands of a page, or of one section of it, block by block, with other ports in them."""
    text = (ROOT / page).read_text()
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for port, other in ports.items():
        text = re.sub(rf"\b{port}\b", str(other), text)
    return BLOCK.findall(text)


def _heed_interrupts() -> None:
    """Let Ctrl-C end the program also where the tests themselves run in the background of a shell, which has
    its programs ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Program:
    """A command that stays in the foreground of a terminal, with what it said."""

    def __init__(self, command: str, tree: Path, environment: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"] if "=" not in command else ["bash", "-c", command], cwd=tree,
            env=dict(environment), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=_heed_interrupts,  # noqa: PLW1509 - no thread runs in the child
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, words: str) -> str:
        """The first line with these words. Raises AssertionError where none comes."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for line in list(self.lines):
                if words in line:
                    return line
            assert self._process.poll() is None, "\n".join(self.lines[-30:])
            time.sleep(0.1)
        raise AssertionError("\n".join(self.lines[-30:]))

    def end(self) -> None:
        """Press Ctrl-C."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(60)


class Terminal:
    """A shell that keeps its variables and functions from one block to the next."""

    def __init__(self, tree: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash"], cwd=tree, env=dict(environment), text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def run(self, block: str) -> str:
        """What a block writes. Raises AssertionError where one of its commands fails."""
        assert self._process.stdin is not None
        watched = "set -E -o pipefail; trap 'echo FAILED: $BASH_COMMAND' ERR"
        # The last line of an answer may have no end of its own.
        told = f"{watched}\n{block}\ntrap - ERR\nprintf '\\n%s\\n' '{END}'\n"
        self._process.stdin.write(told)
        self._process.stdin.flush()
        said: list[str] = []
        while not (said and said[-1].startswith(END)):
            said.append(self._lines.get(timeout=PATIENCE))
        whole = "".join(said[:-1]).strip()
        assert "FAILED: " not in whole, whole
        return whole

    def end(self) -> None:
        """Close it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


@dataclass
class Reader:
    """Somebody with a fresh copy of the tree, a data folder of its own, and terminals."""

    tree: Path
    environment: dict[str, str]
    opened: list[Program | Terminal] = field(default_factory=list)

    def start(self, command: str) -> Program:
        """Run a command that stays. `make` takes what is installed as it is."""
        command = re.sub(r"\bmake up$", "make -o .venv/installed up", command.strip())
        program = Program(command, self.tree, self.environment)
        self.opened.append(program)
        return program

    def terminal(self) -> Terminal:
        """Open a shell."""
        terminal = Terminal(self.tree, self.environment)
        self.opened.append(terminal)
        return terminal


@contextmanager
def fresh_reader(port: int) -> Iterator[Reader]:
    """A copy of the tree with neither `.env` nor settings around it; what was installed is taken over."""
    with TemporaryDirectory(prefix="interlock-reader-", dir=parent()) as name:
        folder = Path(name)
        folder.chmod(0o711)
        tree, data = copied(folder), folder / "data"
        (tree / ".venv").symlink_to(sys.prefix)
        settings = {"INTERLOCK_DATA_DIR": str(data), "INTERLOCK_PORT": str(port)}
        found = Reader(tree, bare(os.environ) | settings)
        try:
            yield found
        finally:
            for one in reversed(found.opened):
                one.end()
            shutil.rmtree(socket_folder(data, Account.for_servers()), ignore_errors=True)
