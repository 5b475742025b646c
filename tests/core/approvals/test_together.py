"""Which requests may be decided side by side."""

import pytest

from approvals.core.together import MOST, Alike, alone, apart
from tests.proves import proves

MAIL = Alike(kind="action", tool="mail.send", definition="a" * 64, risk="network", has_amount=False)


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
    assert why in apart([MAIL, MAIL.model_copy(update=other)])


def test_alike_ones_stand_together_up_to_a_number() -> None:
    assert alone(MAIL) == ""
    assert apart([MAIL] * MOST) == ""
    assert f"at most {MOST}" in apart([MAIL] * (MOST + 1))
    assert apart([]) == "none is chosen"
