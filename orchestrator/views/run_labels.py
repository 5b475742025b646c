"""What the run list calls its views and filters."""

from typing import Final

from orchestrator.queries.run_list import Filters

WORDS: Final = {"needs": "Needs people", "active": "Active", "problems": "Problems", "all": "All"}
LABELS: Final = {
    "status": "state", "workflow": "workflow", "terminal_code": "ended as", "q": "named",
    "created_after": "begun after", "finished_after": "ended after", "cost__gt": "cost over $",
    "tool": "called",
}  # fmt: skip


def sentence_of(filters: Filters) -> str:
    """The filters in a row of words: "Problems · called payments.refund". For `{% hostile_line %}`: what is
    looked for was typed by somebody."""
    said = [f"{LABELS[name]} {value}" for name, value in filters.given.items()]
    return " · ".join([WORDS[filters.view], *said])
