"""README.md, executed: its start and its refund by curl, each command as it is written (finding 18)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from config.devstack import process_specs
from tests.browser.started import Terminal, fresh_reader, shell_blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def wait_until_asked_or_over(terminal: Terminal) -> dict[str, Any]:
    """The reader's run, once it has ended or asks a person something that nobody has decided."""
    poll = (
        "for i in $(seq 400); do "
        'S=$(curl -s $API/runs/$RUN -H "Authorization: Bearer $CLIENT"); '
        'case "$S" in *\'"status":"queued"\'*|*\'"status":"in_progress"\'*) sleep 0.3;; '
        '*) break;; esac; done; echo "$S"'
    )
    found: dict[str, Any] = json.loads(terminal.run(poll))
    return found


def test_finding_18_the_readme_is_true_from_its_start_to_its_refund() -> None:
    port = process_specs.free_port()
    with fresh_reader(port) as reader:
        start, *_ = shell_blocks("README.md", {}, "Start it")
        submit, decide, read = shell_blocks("README.md", {8000: port}, "A refund by curl")
        up = reader.start(start)
        up.wait_for("Interlock is up at")
        up.wait_for("reviewer@demo.example")

        second = reader.terminal()
        second.run(submit)
        assert wait_until_asked_or_over(second)["status"] == "awaiting_gate"
        decided = "curl" + decide.rpartition("curl")[2].rstrip() + " -w '\\nHTTP %{http_code}\\n'"
        gate = decide.partition("\n" + "curl")[0]
        second.run(gate)
        refused = second.run(decided.replace("$REVIEWER", "$CLIENT")).splitlines()[-1]
        first = second.run(decide)
        assert '"digest"' in first
        again = second.run(decided).splitlines()[-1]
        assert (refused, again) == ("HTTP 403", "HTTP 409")

        assert wait_until_asked_or_over(second)["status"] == "awaiting_gate"
        second.run(decide)
        assert wait_until_asked_or_over(second)["status"] == "completed"
        said = second.run(read)
        assert '"status":"completed"' in said
        assert '"urn:interlock:problem:' not in said
