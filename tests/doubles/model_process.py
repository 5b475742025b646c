"""A model's server in a process of its own, which can be killed and started again at the same port."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import OpenAIServer, said
from tests.servers import ROOT


class Agreeable(OpenAIServer):
    """A model that answers everything at once."""

    def answer(self, seen: Seen) -> Reply:
        """Say the same to everybody."""
        self.play(said("Done."))
        return super().answer(seen)


class ModelProcess:
    """The process. Nobody listens at its port while it is dead."""

    def __init__(self) -> None:
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start it and wait until it listens; after a kill, at the same port again."""
        argv = [sys.executable, "-m", "tests.doubles.model_process", str(self.port)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate(timeout=20)
            self._process = None


def main() -> None:
    """Serve until standard input ends, which it does with whoever started this."""
    with Agreeable(port=int(sys.argv[1])) as server:
        sys.stdout.write(f"{server.origin.rpartition(':')[2]}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
