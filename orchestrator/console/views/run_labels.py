"""Labels of the views and filters of the run list."""

from typing import Final

from orchestrator.runs.queries.run_list import Filters

WORDS: Final = {"needs": "Needs people", "active": "Active", "problems": "Problems", "all": "All"}
LABELS: Final = {
    "status": "state", "workflow": "workflow", "terminal_code": "ended as", "q": "named",
    "created_after": "begun after", "finished_after": "ended after", "cost__gt": "cost over $",
    "tool": "called",
}  # fmt: skip


def sentence_of(filters: Filters) -> str:
    """Format the filters as one line: "Problems · called payments.refund".

    Render it with `{% hostile_line %}`: the search text was typed by a user.
    """
    said = [f"{LABELS[name]} {value}" for name, value in filters.active_filters.items()]
    return " · ".join([WORDS[filters.view], *said])
