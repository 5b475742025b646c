"""What can be followed in this house, each feed with the functions that render it for a page."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from approvals.consumers import InboxFeed
from orchestrator.consumers import RunFeed, RunsFeed


def _page(module: str, name: str) -> Any:
    """The function with which a floor renders what a page applies; None where it has no such page."""
    package = module.rpartition(".")[0]
    if not find_spec(package) or not find_spec(module):
        return None
    return getattr(import_module(module), name, None)


RUN = RunFeed(_page("orchestrator.views.fragments", "run_fragments"))
RUNS = RunsFeed(_page("orchestrator.views.fragments", "list_fragments"))
INBOX = InboxFeed(_page("approvals.views.fragments", "inbox_fragments"))
