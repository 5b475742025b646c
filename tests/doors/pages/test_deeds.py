"""What a run had done, on the page of one that came to no result (R-TOOL-15)."""

import re

from django.template.loader import render_to_string

from orchestrator.views.results import outcome_of
from tests.proves import proves

REPORT = {
    "output": None,
    "undone": [{"call": "c2", "tool": "payments.authorize", "now": "The money of HD-2 is held no more."}],
    "not_undone": [{"call": "c3", "tool": "mail.send", "why": "irreversible"}],
}


@proves("R-TOOL-15", part="the page says what was undone and what was not")
def test_what_people_have_to_see_to_stands_first() -> None:
    outcome = outcome_of(REPORT)
    assert outcome is not None
    page = render_to_string(
        "orchestrator/_result.html", {"result": REPORT, "outcome": outcome, "run": {"status": "failed"}}
    )
    left, back = page.index("Not undone:"), page.index("<b>Undone:")
    assert left < back
    assert "mail.send" in page[left:back]
    assert "it cannot be taken back" in page[left:back]
    assert "HD-2 is held no more" in page[back:]


@proves("R-TOOL-9", part="the page says what stays open")
def test_what_may_have_happened_is_named_on_the_page() -> None:
    opened = [{"call": "c4", "tool": "crm.add_note", "error": "crashed", "key": "k"}]
    outcome = outcome_of({"output": None, "open_effects": opened})
    assert outcome is not None
    page = render_to_string(
        "orchestrator/_result.html",
        {"result": {"output": None}, "outcome": outcome, "run": {"status": "completed"}},
    )
    (said,) = re.findall(r'id="open-effects".*?</ul>', page, re.DOTALL)
    assert "Nobody knows whether this happened" in said
    assert "crm.add_note" in said
    assert "crashed" in said
