"""A tool server of the Model Context Protocol whose own log is the judge of what it was made to do.

`book` honours idempotency keys: the same key makes one change. `note` honours none and is found again by
`find_note`. Each change is a line of `effects.jsonl`, written before the call is answered. `control.json`
says how it behaves from now on: `slow` are the seconds before and after a change, `held` keeps every call
waiting, `sabotage` ("twice" or "never") has it perform the next booking so, once: the harness has to notice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from bench.faults.effect_count import Performed
from bench.servers import ROOT

KEY: Final = "io.interlock/idempotency-key"
TEXT: Final = {"type": "string", "maxLength": 200}
CHANGES: Final = ("book", "note")
MADE: Final = {"type": "object", "properties": {"made": TEXT}, "required": ["made"]}
FOUND: Final = {"type": "object", "properties": {"note": {"type": ["object", "null"]}}}


class Journal:
    """What the service knows, in its folder."""

    def __init__(self, folder: Path) -> None:
        self._control, self._log = folder / "control.json", folder / "effects.jsonl"

    def control(self) -> dict[str, Any]:
        """Return how the service is to behave now."""
        try:
            found: dict[str, Any] = json.loads(self._control.read_text())
        except FileNotFoundError:
            return {}
        return found

    def tell(self, **control: Any) -> None:
        """Set how it behaves from now on; what is not named is ordinary again."""
        draft = self._control.with_suffix(".draft")
        draft.write_text(json.dumps(control))
        draft.replace(self._control)

    def write(self, kind: str, tool: str, step: str, key: str) -> None:
        """Append one line."""
        line = {"kind": kind, "tool": tool, "step": step, "key": key, "at": time.time()}
        with self._log.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """Return the whole log."""
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def made(self) -> list[Performed]:
        """Return the changes, oldest first."""
        made = (line for line in self.lines() if line["kind"] == "made")
        return [Performed(service=line["tool"], tag=line["step"], key=line["key"]) for line in made]


def serve(journal: Journal) -> Server[Any]:
    """Return the server."""
    keyed: set[str] = {one.key for one in journal.made() if one.service == "book"}
    spoilt: list[str] = []

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=_offered())

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        arguments, key = params.arguments or {}, str((context.meta or {}).get(KEY, ""))
        if params.name == "find_note":
            return _given({"note": _note_of(journal, str(arguments["key"]))})
        step = str(arguments["step"])
        journal.write("asked", params.name, step, key)
        await _wait(journal)
        for _ in range(_times(journal, params.name, key, keyed, spoilt)):
            journal.write("made", params.name, step, key)
        await _wait(journal)
        journal.write("answered", params.name, step, key)
        return _given({"made": step})

    return Server("service", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def _times(journal: Journal, tool: str, key: str, keyed: set[str], spoilt: list[str]) -> int:
    """Return how often a call is performed: once, and a booking not again under its key."""
    if tool != "book":
        return 1
    if key in keyed:
        return 0
    keyed.add(key)
    wrongly = journal.control().get("sabotage")
    if not wrongly or spoilt:
        return 1
    spoilt.append(key)
    return 2 if wrongly == "twice" else 0


async def _wait(journal: Journal) -> None:
    await asyncio.sleep(float(journal.control().get("slow", 0.0)))
    while journal.control().get("held"):  # noqa: ASYNC110 - another process lets it go on, by a file
        await asyncio.sleep(0.05)


def _note_of(journal: Journal, key: str) -> dict[str, str] | None:
    found = next((one for one in journal.made() if one.key == key and one.service == "note"), None)
    return {"made": found.tag} if found else None


def _offered() -> list[Tool]:
    tools = [
        Tool(
            name=name,
            description=f"{name.capitalize()} a step.",
            input_schema=_object("step"),
            output_schema=MADE,
        )
        for name in CHANGES
    ]
    asked = "Find a note by its key."
    found = Tool(name="find_note", description=asked, input_schema=_object("key"), output_schema=FOUND)
    return [*tools, found]


def _object(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: TEXT}, "required": [name], "additionalProperties": False}


def _given(document: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=json.dumps(document))], structured_content=document)


class ToolService:
    """The process, and its journal. No fault touches it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.journal = Journal(folder)
        argv = [sys.executable, "-m", "bench.faults.tool_service", "--folder", str(folder)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.place = f"127.0.0.1:{int(self._process.stdout.readline())}"
        self.url = f"http://{self.place}/mcp"

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


def main() -> None:
    """Serve over HTTP on any free port, which the first line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    app = serve(Journal(parser.parse_args().folder)).streamable_http_app()
    asyncio.run(_served(uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))))


async def _served(server: uvicorn.Server) -> None:
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it has no event to wait for
        await asyncio.sleep(0.01)
    sys.stdout.write(f"{server.servers[0].sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await serving


if __name__ == "__main__":
    main()
