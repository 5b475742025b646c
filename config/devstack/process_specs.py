"""Processes that `manage.py up` starts, in their order, with their readiness checks."""

from __future__ import annotations

import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from config.devstack.child_process import Command

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Part:
    """One child of the supervisor: its command, readiness check, and actions before and after the start."""

    name: str
    command: Callable[[], Command]
    ready: Callable[[], bool]
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    patience: float = 60.0


def build_python_command(*arguments: str, environment: dict[str, str], patience: float = 15.0) -> Command:
    """Build a command of this interpreter in the checkout."""
    argv = (sys.executable, *arguments)
    return Command(argv=argv, environment=environment, folder=ROOT, patience=patience)


def free_port() -> int:
    """Return a loopback port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_taken(host: str, port: int) -> bool:
    """Return whether a socket is already bound to the address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def is_url_responding(url: str, *, at_all: bool = False) -> bool:
    """Return whether a GET of `url` gives 200; with `at_all`, an HTTP error is accepted too."""
    try:
        with urllib.request.urlopen(url, timeout=3) as response:  # noqa: S310 - a loopback address of ours
            return bool(response.status == 200)
    except urllib.error.HTTPError:
        return at_all
    except OSError:
        return False


def broker_answers(url: str) -> bool:
    """Return whether an external broker answers a PING."""
    try:
        with redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def demo_company(url: str, data: Path, environment: dict[str, str]) -> Part:
    """Build the demo company: its own process, its own database."""
    port = url.rpartition(":")[2]
    command = build_python_command("-m", "demo", "--port", port, "--data", str(data), environment=environment)
    return Part("demo", lambda: command, lambda: is_url_responding(f"{url}/status", at_all=True))


def build_web_part(host: str, port: int, environment: dict[str, str]) -> Part:
    """Build the web server: uvicorn with the ASGI application."""
    command = build_python_command("-m", "config.devstack.serve", environment=environment)
    return Part("web", lambda: command, lambda: is_url_responding(f"http://{host}:{port}/readyz"))


def _build_celery_part(
    name: str, data: Path, environment: dict[str, str], patience: float, *arguments: str
) -> Part:
    mark = data / f"{name}.ready"
    told = environment | {"INTERLOCK_READY_FILE": str(mark)}
    if os.geteuid() == 0:
        # Celery refuses root because of pickle; this project uses JSON only.
        told |= {"C_FORCE_ROOT": "1", "PYTHONWARNINGS": "ignore:::celery.platforms"}
    command = build_python_command(
        "-m", "celery", "-A", "config.celery", "-q", *arguments, environment=told, patience=patience
    )

    def before() -> None:
        mark.unlink(missing_ok=True)

    return Part(name, lambda: command, mark.exists, before=before)


def build_worker_part(data: Path, environment: dict[str, str], *, threads: int, drain: float) -> Part:
    """Build the Celery worker, threads in one process.

    It may take `drain` seconds to release its runs (R-SESS-13).
    """
    arguments = (
        "worker", "--pool", "threads", "--concurrency", str(threads), "--loglevel", "INFO",
        "--without-gossip", "--without-mingle", "--without-heartbeat",
    )  # fmt: skip
    return _build_celery_part("worker", data, environment, drain + 5, *arguments)


def build_beat_part(data: Path, environment: dict[str, str]) -> Part:
    """Build the clock of the static schedule. Its record of past beats is useless after a restart."""
    arguments = ("beat", "--schedule", str(data / "beat"), "--pidfile=", "--loglevel", "INFO")
    return _build_celery_part("beat", data, environment, 10, *arguments)
