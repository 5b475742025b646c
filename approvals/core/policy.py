"""Rules for the authority to decide a request (R-APPR-5).

A decision is allowed by role, queue and limits. No person decides on their own run, except to answer a
question addressed to them, nor on the run of a person related to them (tenancy/core/relations.py).
"""

from collections.abc import Collection
from decimal import Decimal
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from tenancy.core.relations import Actors, Closeness, find_closeness
from tenancy.core.roles import RISKS as RISKS
from tenancy.core.roles import Authority, Scope


class Rule(StrEnum):
    """The rule that forbids a decision, in the order of evaluation."""

    SUBMITTER_ANSWERS = "submitter_answers"
    OWN_RUN = "own_run"
    RELATED = "related"
    RELATED_AGREED = "related_agreed"
    SCOPE = "scope"
    REVEAL = "reveal"
    QUEUE = "queue"
    RISK = "risk"
    AMOUNT_UNREADABLE = "amount_unreadable"
    AMOUNT = "amount"


_ORDER = tuple(Rule)
# The amounts that the limits of an authority are compared with when budget is granted (R-BUDGET-7).
_GRANTED = {
    Rule.RISK: " for side_effects and granted_side_effects",
    Rule.AMOUNT: " for the cost_usd of all that a run is granted",
}


class Refusal(BaseModel):
    """The reason for which a decision is forbidden: the rule and a sentence."""

    model_config = ConfigDict(frozen=True)
    rule: Rule
    sentence: str


class RequestFacts(BaseModel):
    """The properties of a request that the rules check.

    `amount` None: no amount is at stake, or it could not be read. `retriers` are the principals that
    retried the run, or one that it continues; empty: it is no retry. `sealed`: the request holds a sealed
    value, so only a person who may reveal that value decides on it.
    """

    model_config = ConfigDict(frozen=True)
    kind: str
    queue: str
    risk: str
    amount: Decimal | None
    has_amount: bool
    submitter: str
    submitter_owner: str
    retriers: tuple[str, ...] = ()
    retrier_owners: tuple[str, ...] = ()
    sealed: bool = False

    def with_stakes(self, amount: Decimal | None, risk: str = "", *, sealed: bool = False) -> "RequestFacts":
        """Return the request with another amount at stake: an edit's, or the money of an extension.

        `risk` replaces the request's risk if it is greater; `sealed` adds that an edit has a sealed value.
        """
        risk = max(self.risk, risk or self.risk, key=lambda one: _rank_risk(one, len(RISKS)))
        has_amount = self.has_amount or amount is not None
        changed = {"amount": amount, "has_amount": has_amount, "risk": risk, "sealed": self.sealed or sealed}
        return self.model_copy(update=changed)


class Decider(BaseModel):
    """The properties of a person or key that the rules check, as currently in the database (A13).

    Each authority applies by itself: a limit on one queue is not lifted by a wider one on another. `people`
    are all people who act when the decider acts; `keys` are the principals of the keys whose secrets those
    people were shown; `related` and `related_keys` add the people related to them, and their keys.
    """

    model_config = ConfigDict(frozen=True)
    principal: str
    owner: str
    scopes: tuple[str, ...]
    authorities: tuple[Authority, ...]
    people: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    related: frozenset[str] = frozenset()
    related_keys: frozenset[str] = frozenset()

    def is_behind(self, principals: Collection[str], owners: Collection[str]) -> bool:
        """Return whether an action of one of these counts as the decider's own."""
        return self._closeness(principals, owners) is Closeness.OWN

    def is_related_to(self, principals: Collection[str], owners: Collection[str]) -> bool:
        """Return whether an action of one of these is the decider's own or a related person's."""
        return self._closeness(principals, owners) is not Closeness.NONE

    def _closeness(self, principals: Collection[str], owners: Collection[str]) -> Closeness:
        own = Actors(self.keys.union([self.principal]), self.people.union([self.owner]))
        return find_closeness(own, Actors(self.related_keys, self.related), Actors(principals, owners))


def explain_decision_refusal(asked: RequestFacts, decider: Decider) -> Refusal | None:
    """Return why `decider` may not decide, or None."""
    own = decider.is_behind((asked.submitter,), (asked.submitter_owner,))
    if asked.kind == "clarification":
        sentence = "a question is answered by who submitted the task"
        return None if own else Refusal(rule=Rule.SUBMITTER_ANSWERS, sentence=sentence)
    if own:
        return Refusal(rule=Rule.OWN_RUN, sentence="nobody decides on their own run")
    if (close := _explain_kinship_refusal(asked, decider)) is not None:
        return close
    if (lacking := _scope_lacking(asked, decider)) is not None:
        return lacking
    limits = [_explain_limit_refusal(asked, authority) for authority in decider.authorities]
    if None in limits:
        return None
    found = [limit for limit in limits if limit is not None]
    return max(found, key=lambda limit: _ORDER.index(limit.rule))


def _explain_kinship_refusal(asked: RequestFacts, decider: Decider) -> Refusal | None:
    """Return why a decider is too close to a run that is not their own, or None."""
    if decider.is_behind(asked.retriers, asked.retrier_owners):
        return Refusal(rule=Rule.OWN_RUN, sentence="nobody decides on a run that they had begun again")
    principals = (asked.submitter, *asked.retriers)
    if decider.is_related_to(principals, (asked.submitter_owner, *asked.retrier_owners)):
        sentence = "you are related to a person who submitted the run or had it begun again"
        return Refusal(rule=Rule.RELATED, sentence=sentence)
    return None


def _scope_lacking(asked: RequestFacts, decider: Decider) -> Refusal | None:
    if Scope.DECIDE.value not in decider.scopes or not decider.authorities:
        return Refusal(rule=Rule.SCOPE, sentence="the scope decide is missing")
    if asked.sealed and Scope.REVEAL.value not in decider.scopes:
        sentence = "it holds a sealed value, and the scope reveal is missing"
        return Refusal(rule=Rule.REVEAL, sentence=sentence)
    return None


def _explain_limit_refusal(asked: RequestFacts, authority: Authority) -> Refusal | None:
    """Return the first limit of an authority that the request exceeds, or None.

    The caller reports the refusal of the authority that comes nearest.
    """
    if not authority.has_every_queue and asked.queue not in authority.queues:
        return Refusal(rule=Rule.QUEUE, sentence=f"the queue {asked.queue} is not among yours")
    if authority.max_risk and _rank_risk(asked.risk, len(RISKS)) > _rank_risk(authority.max_risk, -1):
        sentence = (
            f"your limit{_format_granted_suffix(asked, Rule.RISK)} is the risk class {authority.max_risk}"
        )
        return Refusal(rule=Rule.RISK, sentence=sentence)
    if not asked.has_amount or authority.max_amount is None:
        return None
    if asked.amount is None:
        sentence = "the amount cannot be read, and your authority has a limit"
        return Refusal(rule=Rule.AMOUNT_UNREADABLE, sentence=sentence)
    if asked.amount > authority.max_amount:
        sentence = f"your limit{_format_granted_suffix(asked, Rule.AMOUNT)} is {authority.max_amount:f}"
        return Refusal(rule=Rule.AMOUNT, sentence=sentence)
    return None


def _format_granted_suffix(asked: RequestFacts, rule: Rule) -> str:
    return _GRANTED[rule] if asked.kind == "budget" else ""


def _rank_risk(risk: str, unknown: int) -> int:
    """Return the rank of a risk class, 0 for the least; `unknown` for any other text, to fail closed."""
    return RISKS.index(risk) if risk in RISKS else unknown
