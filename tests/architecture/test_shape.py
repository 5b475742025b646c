"""Sizes, imports, and the lock."""

from __future__ import annotations

import ast
import logging
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.servers import ROOT

APPS = ("tenancy", "traces", "budgets", "approvals", "orchestrator", "config", "demo", "bench")
OURS = sorted(
    path
    for folder in (*APPS, "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts and "__pycache__" not in path.parts
)
LONGEST = 400


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_floors_and_rooms_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    heard = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    heard = [one for one in heard if not one.disabled]
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS
    # The linter's own set-up of logging silences every logger that it does not know.
    for one in heard:
        one.disabled = False


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    lengths = {_name(path): len(path.read_text().splitlines()) for path in OURS}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


INDENTED = re.compile(r"^[ \t]+(?:import|from) ", re.MULTILINE)


def _hidden_imports(path: Path) -> Iterator[int]:
    text = path.read_text()
    if not INDENTED.search(text):
        return
    lines = text.splitlines()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if "# noqa: PLC0415 - " not in lines[node.lineno - 1]:
                yield node.lineno


def test_no_import_hides_in_a_function_without_a_reason() -> None:
    modules = [path for path in OURS if path.relative_to(ROOT).parts[0] in APPS]
    assert [f"{_name(path)}:{line}" for path in modules for line in _hidden_imports(path)] == []


def test_celery_modules_are_called_jobs() -> None:
    assert [_name(path) for path in OURS if path.name == "tasks.py" and path.parent.name in APPS] == []


def test_nobody_signals_a_run_by_a_celery_canvas() -> None:
    canvas = re.compile(r"from celery(\.canvas)? import .*\b(chain|group|chord|signature)\b")
    assert [_name(path) for path in OURS if canvas.search(path.read_text())] == []


def test_the_lock_names_only_the_public_index() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_the_bootstrap_is_the_locked_uv() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    (locked,) = (package for package in lock["package"] if package["name"] == "uv")
    hashes = {wheel["hash"] for wheel in (*locked["wheels"], locked["sdist"])}
    text = (ROOT / "requirements-bootstrap.txt").read_text()
    assert f"uv=={locked['version']} " in text
    assert set(re.findall(r"--hash=(\S+)", text)) == hashes


def test_every_locked_file_has_a_hash() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    files = [
        file for package in lock["package"] for file in (*package.get("wheels", []), package.get("sdist"))
    ]
    assert all(file["hash"].startswith("sha256:") for file in files if file)
