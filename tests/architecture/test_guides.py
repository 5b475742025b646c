"""What the guides for contributors name is there."""

from __future__ import annotations

import re

import pytest

from tests.servers import ROOT

# A path with at least one folder, or a module of Python; `core/…` and `actions/…` are those of orchestrator.
NAMED = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|md))?|[a-z_]+/[a-z_/]+)`")
BESIDE = ("", "orchestrator/", "orchestrator/core/")


@pytest.mark.parametrize("guide", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_path_that_a_guide_names_exists(guide: str) -> None:
    named = set(NAMED.findall((ROOT / guide).read_text()))
    assert len(named) > 10
    missing = {name for name in named if not any((ROOT / beside / name).exists() for beside in BESIDE)}
    # Sub-packages that a table names in the row of their package.
    rows = {name for name in missing if name.endswith("/") and any(ROOT.glob(f"orchestrator/**/{name}"))}
    assert missing - rows == set()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("orchestrator/runs/actions/submit.py", "submit_task"),
        ("orchestrator/runs/gateways/job_queue.py", "enqueue_run"),
        ("orchestrator/runs/gateways/job_queue.py", "enqueue_ready"),
        ("orchestrator/worker/leases.py", "claim_lease"),
        ("orchestrator/worker/effects/run_loader.py", "load_claimed_run"),
        ("orchestrator/commit/commit.py", "commit_run"),
        ("orchestrator/core/engine/machine.py", "advance"),
        ("budgets/actions/posting.py", "queue_post"),
        ("approvals/core/policy.py", "explain_decision_refusal"),
        ("approvals/actions/__init__.py", "decide_request"),
        ("approvals/actions/__init__.py", "consume_grant"),
    ],
)
def test_every_function_that_the_guide_names_is_where_it_says(module: str, name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs/architecture.md").read_text()
    assert re.search(rf"^def {name}\(", (ROOT / module).read_text(), re.MULTILINE)
