"""The import linter sees every folder, and a value refuses what is not its own."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import cast

import grimp
import pytest
from mypy import api

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.goal import Goal
from tests.servers import ROOT

ROOTS = cast(
    "list[str]",
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"],
)


def modules_on_disk(root: str) -> set[str]:
    """Return the dotted name of each module and package folder below `root`."""
    found = set()
    for path in (ROOT / root).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found |= {".".join(parts[: 1 + depth]) for depth in range(len(parts)) if parts[depth] != "__init__"}
    return found


def test_every_module_is_known_to_the_import_linter() -> None:
    known = grimp.build_graph(*ROOTS, include_external_packages=True).modules
    assert {name for root in ROOTS for name in modules_on_disk(root)} - known == set()


def test_every_app_of_the_project_is_a_root_of_the_import_linter() -> None:
    apps = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests"}
    assert set(ROOTS) == apps


def test_evolve_with_an_unknown_field_is_refused() -> None:
    goal = Goal(objective="Count.")
    assert goal.evolve(objective="Add.").objective == "Add."
    with pytest.raises(TypeError, match="Goal has no field objectives"):
        goal.evolve(objectives="Add.")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="a price has no field inputs"):
        ModelPrice.free("scripted", "m").evolve(inputs=1)  # type: ignore[call-arg]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code"), [("objective=1", "arg-type"), ("objectives='x'", "call-arg"), ("objective='x'", None)]
)
def test_evolve_is_checked_by_mypy(tmp_path: Path, change: str, code: str | None) -> None:
    module = tmp_path / "evolving.py"
    module.write_text(
        "from orchestrator.core.common.goal import Goal\n"
        f"found: Goal = Goal(objective='x').evolve({change})\n"
    )
    told, _, _ = api.run([str(module), "--config-file", str(ROOT / "pyproject.toml")])
    assert (f"[{code}]" in told) if code else told.startswith("Success")


# Folders that hold more than twelve modules, with their number. It may only fall; a new folder never enters.
MOST_MODULES = 12
STILL_LARGE = {
    "approvals/views": 13,
    "demo": 13,
    "orchestrator/actions": 63,
    "orchestrator/api": 35,
    "orchestrator/gateways": 13,
    "orchestrator/gateways/llm": 15,
    "orchestrator/gateways/tools": 24,
    "orchestrator/gateways/tools/builtin": 19,
    "orchestrator/models": 16,
    "orchestrator/queries": 48,
    "orchestrator/views": 38,
}


def test_no_folder_holds_more_than_twelve_modules_but_those_that_still_shrink() -> None:
    folders = Counter(
        str(path.parent.relative_to(ROOT))
        for root in ROOTS
        for path in (ROOT / root).rglob("*.py")
        if path.name != "__init__.py" and "migrations" not in path.parts
    )
    assert {name: count for name, count in folders.items() if count > MOST_MODULES} == STILL_LARGE
