"""Who may decide what: the rule, for any request and anybody."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.core.policy import RISKS, Decider, RequestFacts, Rule, explain_decision_refusal
from tenancy.core.roles import EVERY_QUEUE, Authority
from tests.proves import proves

QUEUES = ("finance", "operations", "security")
AMOUNTS = st.none() | st.decimals(0, 1_000, places=2)
AUTHORITIES = st.builds(
    Authority,
    st.just(EVERY_QUEUE) | st.lists(st.sampled_from(QUEUES), max_size=2, unique=True).map(tuple),
    AMOUNTS,
    st.sampled_from(("", *RISKS)),
)
SCOPES = st.sampled_from([("read", "decide"), ("submit", "read")])
NAMES = st.sampled_from(["ann", "bob", "key"])
ASKED = st.builds(
    RequestFacts,
    kind=st.sampled_from(["action", "reconciliation", "clarification"]),
    queue=st.sampled_from(QUEUES),
    risk=st.sampled_from(RISKS),
    amount=AMOUNTS,
    has_amount=st.booleans(),
    submitter=NAMES,
    submitter_owner=NAMES,
)
DECIDERS = st.builds(
    Decider,
    principal=NAMES,
    owner=NAMES,
    scopes=SCOPES,
    authorities=st.lists(AUTHORITIES, max_size=3).map(tuple),
)
SETS = st.frozensets(st.sampled_from(["ann", "bob", "key", "eve"]))


def asked(**more: object) -> RequestFacts:
    """A refund of 150 that Ann submitted."""
    given: dict[str, object] = {
        "kind": "action",
        "queue": "finance",
        "risk": "destructive",
        "amount": Decimal(150),
        "has_amount": True,
        "submitter": "ann",
        "submitter_owner": "ann",
    }
    return RequestFacts.model_validate(given | more)


def bob(*authorities: Authority) -> Decider:
    """Bob, who may decide within these limits."""
    return Decider(principal="bob", owner="bob", scopes=("decide",), authorities=authorities)


def rule(request: RequestFacts, *authorities: Authority) -> Rule | None:
    """The rule that keeps Bob from deciding."""
    found = explain_decision_refusal(request, bob(*authorities))
    return found.rule if found is not None else None


def reaches(authority: Authority, request: RequestFacts) -> bool:
    """Whether one authority covers a request, said the other way round."""
    queue = "*" in authority.queues or request.queue in authority.queues
    risk = not authority.max_risk or RISKS.index(request.risk) <= RISKS.index(authority.max_risk)
    limited = request.has_amount and authority.max_amount is not None
    within = request.amount is not None and request.amount <= (authority.max_amount or 0)
    return queue and risk and (within or not limited)


@proves("A8", part="rule")
@proves("R-APPR-5", part="never one's own")
@given(ASKED, DECIDERS)
def test_nobody_decides_their_own_run_by_any_key(request: RequestFacts, decider: Decider) -> None:
    own = decider.principal == request.submitter or decider.owner == request.submitter_owner
    if request.kind == "clarification":
        assert (explain_decision_refusal(request, decider) is None) == own
    elif own:
        assert explain_decision_refusal(request, decider) is not None


@proves("R-APPR-5", part="limits")
@given(ASKED, DECIDERS)
def test_a_word_counts_exactly_when_one_authority_reaches_that_far(
    request: RequestFacts, decider: Decider
) -> None:
    own = decider.principal == request.submitter or decider.owner == request.submitter_owner
    if request.kind == "clarification" or own:
        return
    reached = any(reaches(authority, request) for authority in decider.authorities)
    assert (explain_decision_refusal(request, decider) is None) == (reached and "decide" in decider.scopes)


@given(ASKED, DECIDERS, AUTHORITIES)
def test_more_authority_never_takes_a_word_away(
    request: RequestFacts, decider: Decider, more: Authority
) -> None:
    wider = decider.model_copy(update={"authorities": (*decider.authorities, more)})
    assert (
        explain_decision_refusal(request, decider) is not None
        or explain_decision_refusal(request, wider) is None
    )


@proves("R-APPR-5", part="limits are not mixed")
def test_a_limit_on_one_queue_is_not_lifted_by_another_queue() -> None:
    small, elsewhere = Authority(("finance",), Decimal(100)), Authority(("operations",))
    assert rule(asked(), small, elsewhere) is Rule.AMOUNT
    assert rule(asked(queue="operations"), small, elsewhere) is None


@pytest.mark.parametrize(
    ("authority", "expected"),
    [
        (Authority(), None),
        (Authority(queues=()), Rule.QUEUE),
        (Authority(queues=("*",)), None),
        (Authority(("finance", "security")), None),
        (Authority(("operations",)), Rule.QUEUE),
        (Authority(max_risk="network"), Rule.RISK),
        (Authority(max_amount=Decimal(150)), None),
        (Authority(max_amount=Decimal("149.99")), Rule.AMOUNT),
        (Authority(max_amount=Decimal(0)), Rule.AMOUNT),
    ],
)
def test_each_limit_is_named(authority: Authority, expected: Rule | None) -> None:
    assert rule(asked(), authority) is expected


def test_an_amount_nobody_can_read_is_beyond_every_limit() -> None:
    assert rule(asked(amount=None), Authority(max_amount=Decimal(10_000))) is Rule.AMOUNT_UNREADABLE
    assert rule(asked(amount=None), Authority()) is None


def test_a_risk_class_nobody_knows_is_beyond_every_limit() -> None:
    assert rule(asked(risk="wild"), Authority(max_risk="destructive")) is Rule.RISK
    assert rule(asked(risk="read_only"), Authority(max_risk="wild")) is Rule.RISK


def test_without_the_scope_or_any_authority_there_is_no_word() -> None:
    assert rule(asked()) is Rule.SCOPE
    reader = Decider(principal="bob", owner="bob", scopes=("read",), authorities=(Authority(),))
    found = explain_decision_refusal(asked(), reader)
    assert found is not None
    assert found.rule is Rule.SCOPE


def test_the_refusal_names_what_comes_nearest() -> None:
    found = explain_decision_refusal(
        asked(), bob(Authority(("security",)), Authority(max_amount=Decimal("99.50")))
    )
    assert found is not None
    assert found.sentence == "your limit is 99.50"


@proves("R-APPR-5", part="related people")
@given(
    ASKED,
    DECIDERS,
    st.sampled_from(["people", "keys", "related", "related_keys"]),
    st.lists(NAMES, max_size=2),
)
def test_nobody_decides_the_run_of_a_related_person(
    request: RequestFacts, decider: Decider, which: str, retriers: list[str]
) -> None:
    given = {"kind": "action", "retriers": tuple(retriers), "retrier_owners": tuple(retriers)}
    everybody = frozenset([request.submitter, request.submitter_owner])
    found = explain_decision_refusal(
        request.model_copy(update=given), decider.model_copy(update={which: everybody})
    )
    assert found is not None
    close = (Rule.OWN_RUN,) if which in ("people", "keys") else (Rule.OWN_RUN, Rule.RELATED)
    assert found.rule in close


@given(ASKED, DECIDERS, SETS, SETS)
def test_a_relation_more_never_lets_anybody_decide(
    request: RequestFacts, decider: Decider, related: frozenset[str], keys: frozenset[str]
) -> None:
    if explain_decision_refusal(request, decider) is not None:
        assert (
            explain_decision_refusal(
                request, decider.model_copy(update={"related": related, "related_keys": keys})
            )
            is not None
        )


@proves("R-APPR-5", part="related people, those who had it begun again")
@pytest.mark.parametrize(
    ("sets", "rule"),
    [
        ({"related": frozenset(["eve"])}, Rule.RELATED),
        ({"related_keys": frozenset(["key"])}, Rule.RELATED),
        ({"people": frozenset(["eve"])}, Rule.OWN_RUN),
        ({"keys": frozenset(["key"])}, Rule.OWN_RUN),
    ],
)
def test_a_person_related_to_a_retrier_does_not_decide(sets: dict[str, frozenset[str]], rule: Rule) -> None:
    request = asked(retriers=("key",), retrier_owners=("eve",))
    assert explain_decision_refusal(request, bob(Authority())) is None
    found = explain_decision_refusal(request, bob(Authority()).model_copy(update=sets))
    assert found is not None
    assert found.rule is rule


@proves("R-SEC-4", part="who decides on a sealed value")
def test_a_request_with_a_sealed_value_is_decided_by_whoever_may_see_it() -> None:
    sealed, plain = asked(sealed=True), asked()
    may_see = Decider(principal="bob", owner="bob", scopes=("decide", "reveal"), authorities=(Authority(),))
    found = explain_decision_refusal(sealed, bob(Authority()))
    assert found is not None
    assert found.rule is Rule.REVEAL
    assert explain_decision_refusal(sealed, may_see) is None
    assert explain_decision_refusal(plain, bob(Authority())) is None
    assert explain_decision_refusal(plain.with_stakes(None, sealed=True), bob(Authority())) is not None
