"""The feeds that can be followed, each with the functions that render it for a page."""

from __future__ import annotations

from approvals.consumers import InboxFeed
from approvals.views.fragments import inbox_fragments
from approvals.views.live_inbox import view_of
from config.templatetags.ui import marked
from orchestrator.console.views.dashboard import overview_fragments
from orchestrator.console.views.fragments import LIST_VIEWS, RUN_VIEWS, list_fragments, run_fragments
from orchestrator.console.views.tabs import FORMER
from orchestrator.consumers import OverviewFeed, RunFeed, runs_feed

RUN = RunFeed(run_fragments, RUN_VIEWS, marked, FORMER)
RUNS = runs_feed(list_fragments, LIST_VIEWS)
INBOX = InboxFeed(inbox_fragments, view_of)
OVERVIEW = OverviewFeed(overview_fragments, view_of)
