"""The page on the checks and the code say the same."""

import re
from pathlib import Path

from orchestrator.core.compiler.checks.diagnostics import RULES
from orchestrator.core.workflow.edge_guards import GUARDS

PAGE = (Path(__file__).parents[3] / "docs" / "graph-checks.md").read_text(encoding="utf-8")


def test_every_rule_stands_on_the_page_under_its_number() -> None:
    rows = re.findall(r"^\| (\d+) \| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert {int(number): rule for number, rule in rows} == dict(RULES)


def test_every_guard_stands_on_the_page() -> None:
    section = PAGE.split("## Guards")[1].split("Parameters")[0]
    assert re.findall(r"`([a-z_]+)`", section) == list(GUARDS)
