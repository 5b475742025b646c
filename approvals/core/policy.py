"""Who may decide what (R-APPR-5): by role, queue and limits, never one's own run, except to answer a question to oneself."""

from decimal import Decimal

from pydantic import BaseModel, ConfigDict

RISKS = ("read_only", "local_write", "network", "delegated", "destructive")


class Asked(BaseModel):
    """What the rule looks at in a request. `amount` None: no amount is at stake, or it could not be read."""

    model_config = ConfigDict(frozen=True)
    kind: str
    queue: str
    risk: str
    amount: Decimal | None
    has_amount: bool
    submitter: str
    submitter_owner: str


class Decider(BaseModel):
    """What the rule looks at in a person or key, as the database has it now (A13)."""

    model_config = ConfigDict(frozen=True)
    principal: str
    owner: str
    scopes: tuple[str, ...]
    queues: tuple[str, ...]
    max_amount: Decimal | None
    max_risk: str


def refusal(asked: Asked, decider: Decider) -> str | None:
    """Why `decider` may not decide, or None."""
    own = decider.principal == asked.submitter or decider.owner == asked.submitter_owner
    if asked.kind == "clarification":
        return None if own else "a question is answered by who submitted the task"
    if own:
        return "nobody decides on their own run"
    if "decide" not in decider.scopes:
        return "the scope decide is missing"
    if decider.queues and asked.queue not in decider.queues:
        return f"the queue {asked.queue} is not among yours"
    if decider.max_risk and RISKS.index(asked.risk) > RISKS.index(decider.max_risk):
        return f"your limit is the risk class {decider.max_risk}"
    if asked.has_amount and decider.max_amount is not None:
        if asked.amount is None:
            return "the amount cannot be read, and your authority has a limit"
        if asked.amount > decider.max_amount:
            return f"your limit is {decider.max_amount}"
    return None
