"""A stand-in for a model server: it speaks the chat-completions protocol, and answers by two rules.

.venv/bin/python examples/model_server.py [PORT]

A goal "Add this note: …" makes it call the tool add_note; any other goal makes it look for tea in the notes.
After a tool's answer it says what the tool said.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADD = "Add this note: "


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, whether it comes whole or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The message that the two rules give."""
    messages, tools = asked["messages"], [one["function"]["name"] for one in asked.get("tools", [])]
    goal = next((text_of(one) for one in messages if one["role"] == "user"), "")
    if messages[-1]["role"] == "tool" or not tools:
        return {"role": "assistant", "content": text_of(messages[-1])}
    adds = ADD in goal
    arguments = {"text": goal.partition(ADD)[2].split('"')[0].split("\n")[0]} if adds else {"word": "tea"}
    name = next(one for one in tools if one.endswith("add_note" if adds else "find_notes"))
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class Handler(BaseHTTPRequestHandler):
    """One completion for each POST."""

    def do_POST(self) -> None:
        """Answer with a chat completion."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = answer(asked)
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = json.dumps({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": asked["model"],
            "choices": [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if sys.argv[1:] else 11434
    print(f"Answering at http://127.0.0.1:{port}/v1", flush=True)  # noqa: T201 - its terminal is its screen
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
