"""`python -m demo --port N --data DIR`: open the company on loopback."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from datetime import date
from pathlib import Path

import uvicorn

from demo.service import Company
from demo.storage.repositories import Repositories
from demo.storage.store import Store

_HOST = "127.0.0.1"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description="The demo company, on loopback.")
    parser.add_argument(
        "--port", type=int, default=os.environ.get("DEMO_PORT", "8090"), help="0: any free one"
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("DEMO_DATA", ".data/demo"))
    parser.add_argument(
        "--today",
        type=date.fromisoformat,
        default=os.environ.get("DEMO_TODAY"),
        help="the company's day, YYYY-MM-DD (default: the day after its newest order)",
    )
    return parser.parse_args()


def _open_listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((_HOST, port))
    listener.listen(256)
    return listener


def main() -> int:
    """Open, say where, serve until told to stop. Returns 1 where port or data folder cannot be had."""
    options = _parse_options()
    try:
        listener = _open_listener(options.port)
        company = Company(Repositories(Store(options.data), options.today))
    except (OSError, OverflowError) as error:
        print(f"demo: port {options.port}, data {options.data}: {error}", file=sys.stderr)
        return 1
    port = listener.getsockname()[1]
    print(f"demo company on http://{_HOST}:{port}, data in {options.data}", flush=True)
    config = uvicorn.Config(
        company.application,
        lifespan="off",
        ws="none",
        log_level="warning",
        access_log=False,
        # Requests may be held by a fault for an hour; closing time does not wait for them.
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
