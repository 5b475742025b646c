"""Sample data of the style guide: one of every component, and the six states of a region."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.utils import timezone

from config.ui.status_styles import CLASSES, STATES

HOSTILE = (
    "Refund 4411\u202e7141\u202c please\u200b\u200b\u200b <b onclick=alert(1)>now</b> \x1b[31mred\x1b[0m "
    "from p\u0430ypal.com"
    + " " * 400
    + "and\n\n\n\n\n\n\n\nthen e\u0301\u0301\u0301\u0301\u0301\u0301 the end"
)
SAMPLE = {
    "order": "4411", "amount": {"value": "1240.00", "currency": "USD"}, "cards": [1, 2, 3], "note": HOSTILE,
    "confirmed": False, "reviewer": None, "nothing": {},
}  # fmt: skip
CHANGED = SAMPLE | {"amount": {"value": "1240.50", "currency": "USD"}, "confirmed": True}


class SampleForm(forms.Form):
    """A form with a field of each kind."""

    order = forms.CharField(label="Order", help_text="Ten digits, as on the invoice.")
    amount = forms.DecimalField(label="Amount", min_value=Decimal("0.01"))
    queue = forms.ChoiceField(label="Queue", choices=[("finance", "Finance"), ("support", "Support")])
    note = forms.CharField(label="Note", widget=forms.Textarea, required=False)
    how = forms.ChoiceField(
        label="How", choices=[("card", "By card"), ("post", "By post")], widget=forms.RadioSelect
    )
    sure = forms.BooleanField(label="I have read the packet", required=False)


ROWS = [
    ("gpt-4o", Decimal("41.20"), "$41.20"),
    ("claude", Decimal("12.05"), "$12.05"),
    ("scripted", 0, "$0.00"),
]
TEXTS = ("first line\nsecond line\nthird line", "first line\nsecond line, changed\nthird line\nfourth")


def build_styleguide_samples() -> dict[str, Any]:
    """Build the style guide's context."""
    now: datetime = timezone.now()
    refused = SampleForm({"order": "", "amount": "-3", "queue": "finance", "how": "card"})
    refused.is_valid()
    return {
        "states": list(STATES), "classes": list(CLASSES), "hostile": HOSTILE, "sample": SAMPLE,
        "changed": CHANGED, "form": SampleForm(auto_id="fresh_%s"), "refused": refused,
        "moment": now - timedelta(minutes=4),
        "amounts": [Decimal("1240"), Decimal("0.0071"), Decimal("0.00001"), Decimal("-3.5"), None],
        "stretches": [0.4, 1.9, 220, 7500, 273_600, None],
        "values": [3, 5, 4, 8, 13, 9, 7, 12, 20, 16, 11, 8],
        "rows": ROWS,
        "text": TEXTS[0], "text_after": TEXTS[1],
    }  # fmt: skip
