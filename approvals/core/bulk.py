"""Rule for the requests that may be decided together (R-APPR-9)."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from approvals.core.policy import RISKS

MOST = 20
HIGHEST = "network"
LOW = RISKS[: RISKS.index(HIGHEST) + 1]


class BulkKey(BaseModel):
    """The properties that must be equal in requests decided together.

    `definition` is the digest of the tool's version.
    """

    model_config = ConfigDict(frozen=True)
    kind: str
    tool: str
    definition: str
    risk: str
    has_amount: bool


def explain_bulk_exclusion(one: BulkKey) -> str:
    """Return why a request must be decided by itself; "" if it may be decided with others."""
    if one.kind != "action":
        return "only calls are decided together"
    if one.risk not in LOW:
        return f"the risk class {one.risk} is above {HIGHEST}: each is decided by itself"
    return "it moves money: each is decided by itself" if one.has_amount else ""


def first_group(requests: Sequence[BulkKey]) -> tuple[int, ...]:
    """Return the indexes of the first eligible request and all that may be decided with it.

    The indexes are in order, at most `MOST`.
    """
    fit = [place for place, one in enumerate(requests) if not explain_bulk_exclusion(one)]
    return tuple(place for place in fit if not explain_bulk_mismatch([requests[fit[0]], requests[place]]))[
        :MOST
    ]


def explain_bulk_mismatch(requests: Sequence[BulkKey]) -> str:
    """Return why these may not be decided together; "" if they may."""
    if not requests:
        return "none is chosen"
    if len(requests) > MOST:
        return f"at most {MOST} are decided together"
    for one in requests:
        if why := explain_bulk_exclusion(one):
            return why
    first = requests[0]
    if any((one.tool, one.definition) != (first.tool, first.definition) for one in requests):
        return "they are not for the same version of one tool"
    return "" if all(one.risk == first.risk for one in requests) else "their risk classes differ"
