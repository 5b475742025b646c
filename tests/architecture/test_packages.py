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


MOST_MODULES = 12


def test_no_folder_holds_more_than_twelve_modules() -> None:
    folders = Counter(
        str(path.parent.relative_to(ROOT))
        for root in ROOTS
        for path in (ROOT / root).rglob("*.py")
        if path.name != "__init__.py" and "migrations" not in path.parts
    )
    assert {name: count for name, count in folders.items() if count > MOST_MODULES} == {}


# The layers of a subject of orchestrator, and the packages that are one layer as a whole.
LAYERS = {"models", "queries", "gateways", "actions", "api", "views"}
WHOLE = {"commit", "worker", "api", "core", "management", "migrations"}


def test_every_module_of_a_subject_lies_in_a_layer() -> None:
    inside = {name.split(".", 1)[1] for name in modules_on_disk("orchestrator") if name.count(".") > 1}
    lost = {
        name
        for name in inside
        if (parts := name.split("."))[0] not in WHOLE and parts[1] not in LAYERS and name != "console.urls"
    }
    assert lost == set()
