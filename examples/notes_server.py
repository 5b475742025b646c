"""A tool server of the Model Context Protocol: two tools on a list of notes, kept in memory.

.venv/bin/python examples/notes_server.py [PORT]
"""

import sys

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("notes")
NOTES = ["Ada likes her tea without milk."]


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def find_notes(word: str) -> str:
    """Find the notes that contain a word."""
    return "\n".join(note for note in NOTES if word.lower() in note.lower())


@server.tool()
def add_note(text: str) -> str:
    """Add a note."""
    NOTES.append(text)
    print(f"added: {text}", flush=True)  # noqa: T201 - its terminal is its screen
    return f"There are {len(NOTES)} notes now."


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]) if sys.argv[1:] else 8100)
