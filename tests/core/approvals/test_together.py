"""Which requests may be decided side by side."""

import pytest

from approvals.core.bulk import MOST, BulkKey, explain_bulk_exclusion, explain_bulk_mismatch, first_group
from tests.proves import proves

MAIL = BulkKey(kind="action", tool="mail.send", definition="a" * 64, risk="network", has_amount=False)


@proves("R-APPR-9", part="the same tool version and a low class only")
@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"tool": "web.post"}, "same version of one tool"),
        ({"definition": "b" * 64}, "same version of one tool"),
        ({"risk": "local_write"}, "risk classes differ"),
        ({"risk": "destructive"}, "above network"),
        ({"risk": "delegated"}, "above network"),
        ({"risk": "unheard-of"}, "above network"),
        ({"has_amount": True}, "moves money"),
        ({"kind": "clarification"}, "only calls"),
    ],
)
def test_what_differs_or_weighs_more_is_decided_apart(other: dict[str, object], why: str) -> None:
    assert why in explain_bulk_mismatch([MAIL, MAIL.model_copy(update=other)])


def test_alike_ones_stand_together_up_to_a_number() -> None:
    assert explain_bulk_exclusion(MAIL) == ""
    assert explain_bulk_mismatch([MAIL] * MOST) == ""
    assert f"at most {MOST}" in explain_bulk_mismatch([MAIL] * (MOST + 1))
    assert explain_bulk_mismatch([]) == "none is chosen"


@proves("R-APPR-9", part="with none picked, the first and all like it")
def test_the_first_group_is_of_one_tool_and_of_the_first_that_fits() -> None:
    other, money = (MAIL.model_copy(update=more) for more in ({"tool": "web.post"}, {"has_amount": True}))
    assert first_group([money, MAIL, other, MAIL]) == (1, 3)
    assert first_group([other, MAIL, other]) == (0, 2)
    assert first_group([MAIL] * (MOST + 5)) == tuple(range(MOST))
    assert first_group([money]) == ()
