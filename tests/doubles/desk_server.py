"""A tool server with tools that read, send, pay, post, run and write, a process of its own.

What its pages say stands in `control.json` by their names as `pages`, and by the tool as `fails` what it says
instead of doing anything; every call and every effect is in its log before it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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

from tests.doubles.mcp_server import KEY, ROOT, Shop, ToolServer

READS = {"read_page": ("name",), "find_person": ("name",), "fetch": ("url",)}
CHANGES = {
    "send_mail": ("to", "text"), "pay": ("account", "amount"), "post_to": ("url", "body"),
    "run_command": ("command",), "write_file": ("path", "content"), "close_ticket": ("ticket",),
    "set_flag": ("on",), "keep_note": ("text",),
}  # fmt: skip


def _schema(names: tuple[str, ...]) -> dict[str, Any]:
    # No types: a list of recipients has to arrive as one.
    properties: dict[str, Any] = {name: {} for name in names}
    return {
        "type": "object", "properties": properties, "required": list(names), "additionalProperties": False
    }  # fmt: skip


def serve(shop: Shop) -> Server[Any]:
    """The server."""
    offered = [
        Tool(name=name, description=name.replace("_", " "), input_schema=_schema(held))
        for name, held in {**READS, **CHANGES}.items()
    ]

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        arguments, key = params.arguments or {}, str((context.meta or {}).get(KEY, ""))
        shop.write("called", params.name, arguments, key)
        if fault := shop.control().get("fails", {}).get(params.name):
            return CallToolResult(content=[TextContent(text=fault)], is_error=True)
        if params.name == "read_page":
            return _said(str(shop.control()["pages"][arguments["name"]]))
        if params.name == "find_person":
            return _said(json.dumps({"asked": arguments["name"], "found": "nobody"}))
        if params.name in CHANGES or "?d=" in str(arguments.get("url", "")):
            shop.write("committed", params.name, arguments, key)
        if params.name == "keep_note":
            return _said(json.dumps({"kept": arguments["text"]}))
        return _said("done")

    return Server("desk", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def _said(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)])


class DeskServer(ToolServer):
    """The process, its log, and what its pages say."""

    def start(self) -> None:
        """Start it and wait for its port."""
        argv = (sys.executable, "-m", "tests.doubles.desk_server", "--folder", str(self.folder))
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())


def main() -> None:
    """Serve over HTTP on any free port, which the first line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    app = serve(Shop(parser.parse_args().folder)).streamable_http_app()
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical")
    asyncio.run(_served(uvicorn.Server(config)))


async def _served(server: uvicorn.Server) -> None:
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it has no event to wait for
        await asyncio.sleep(0.01)
    sys.stdout.write(f"{server.servers[0].sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await serving


@pytest.fixture(scope="session")
def desk_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskServer]:
    """One process for all tests of this one; its log is for a test to forget."""
    found = DeskServer(tmp_path_factory.mktemp("desk-server"))
    found.start()
    yield found
    found.stop()


if __name__ == "__main__":
    main()
