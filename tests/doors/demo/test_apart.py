"""The company is the world outside: neither side imports the other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[3]
_HOUSE = ("approvals", "budgets", "config", "orchestrator", "tenancy", "traces")


def imported(folder: Path) -> set[str]:
    """The top-level names that the modules under a folder import."""
    trees = [ast.parse(path.read_bytes()) for path in folder.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_the_company_knows_nothing_of_the_house() -> None:
    foreign = imported(_ROOT / "demo") - sys.stdlib_module_names
    assert foreign <= {"__future__", "demo", "pydantic", "uvicorn"}


@pytest.mark.parametrize("app", _HOUSE)
def test_the_house_knows_nothing_of_the_company(app: str) -> None:
    assert "demo" not in imported(_ROOT / app)


def test_it_runs_where_there_is_no_house(scratch: Path) -> None:
    (scratch / "demo").symlink_to(_ROOT / "demo")
    argv = [sys.executable, "-m", "demo", "--help"]
    ended = subprocess.run(argv, cwd=scratch, env={}, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
