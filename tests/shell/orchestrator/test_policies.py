"""A tenant's policy: versions, the second person, and runs under way."""

import pytest
from django.db import DatabaseError, transaction

from orchestrator.console.queries.system_status import stops_of
from orchestrator.core.approval.errors import OwnProposal, ProposalOpen
from orchestrator.core.policy.rules import SHIPPED, Policy, Rule
from orchestrator.policies.actions.policy_versions import (
    ChangeAuthor,
    PolicyChange,
    agree_to_policy,
    asked_policy,
    change_policy,
    drop_proposal,
)
from orchestrator.policies.models import PolicyProposal, PolicyVersion
from orchestrator.policies.queries.policies import find_open_proposal, policy_now
from orchestrator.runs.models.emergency_stop import EmergencyStop
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.proves import proves

SHUT = Rule(name="shut", decision="deny", reason="Not here.", tools=("ledger.*",))
STRICTER = SHIPPED.evolve(rules=(SHUT, *SHIPPED.rules))
WEAKER = SHIPPED.evolve(rules=SHIPPED.rules[1:])


def who() -> ChangeAuthor:
    """Somebody new."""
    return ChangeAuthor(principal=fresh_id(), owner=fresh_id())


def change(house: House, policy: Policy, by: ChangeAuthor | None = None) -> PolicyChange:
    """Change the policy."""
    return change_policy(house.tenant.id, policy, expected=None, who=by or who(), reason="We thought of it.")


@proves("R-TOOL-17", part="what is stricter holds at once")
def test_a_stricter_policy_is_a_version_at_once_and_reaches_running_runs(house: House) -> None:
    now = change(house, STRICTER).now
    assert (now.version, now.policy.rules[0]) == (1, SHUT)
    with tenant_transaction(house.tenant.id):
        told = EmergencyStop.objects.get(scope="policy", tenant_id=house.tenant.id, lifted_at=None)
        assert told.target == now.policy.digest
        assert [stop for stop in stops_of(house.tenant.id) if stop.scope == "policy"] == []


def test_the_same_policy_again_is_no_version(house: House) -> None:
    assert change(house, SHIPPED).now.row is None
    with tenant_transaction(house.tenant.id):
        assert not PolicyVersion.objects.exists()


@proves("R-TOOL-17", part="what is weaker needs a second person")
def test_a_weaker_policy_waits_for_somebody_else(house: House) -> None:
    proposer = who()
    done = change(house, WEAKER, proposer)
    assert done.now.version == 0
    assert done.proposal is not None
    with tenant_transaction(house.tenant.id):
        waiting = find_open_proposal()
    assert waiting is not None
    assert {case.before for case in waiting.weaker} == {"deny"}
    house_id, key = house.tenant.id, done.proposal.id
    for same in (proposer, ChangeAuthor(principal=fresh_id(), owner=proposer.owner)):
        with pytest.raises(OwnProposal):
            agree_to_policy(house_id, key, who=same, reason="Yes.")
    now = agree_to_policy(house_id, key, who=who(), reason="Yes.").now
    assert (now.version, now.policy.rules) == (1, WEAKER.rules)
    assert now.row is not None
    assert now.row.loosens
    with pytest.raises(NotFound):
        agree_to_policy(house_id, key, who=who(), reason="Yes.")


def test_a_proposal_is_outdated_once_the_policy_has_changed(house: House) -> None:
    waiting = change(house, WEAKER).proposal
    assert waiting is not None
    with pytest.raises(ProposalOpen):
        change(house, Policy())
    change(house, STRICTER)
    with pytest.raises(NotFound):
        agree_to_policy(house.tenant.id, waiting.id, who=who(), reason="Yes.")
    with tenant_transaction(house.tenant.id):
        assert PolicyProposal.objects.get(id=waiting.id).status == "outdated"


def test_a_proposal_can_be_refused_and_taken_back(house: House) -> None:
    proposer = who()
    for by, status in ((who(), "refused"), (proposer, "withdrawn")):
        waiting = change(house, WEAKER, proposer).proposal
        assert waiting is not None
        drop_proposal(house.tenant.id, waiting.id, who=by, reason="No.")
        with tenant_transaction(house.tenant.id):
            assert PolicyProposal.objects.get(id=waiting.id).status == status
            assert policy_now().version == 0


@proves("R-TOOL-17", part="the database itself asks for the second person")
def test_the_database_refuses_a_weaker_version_of_one_person_and_every_edit(house: House) -> None:
    alone = who()
    now = change(house, STRICTER, alone).now
    assert now.row is not None
    row = {
        name: getattr(now.row, name)
        for name in ("tenant_id", "digest", "body", "reason", "by", "owner", "at")
    }
    with tenant_transaction(house.tenant.id):
        for second in ({}, {"agreed_by": fresh_id(), "agreed_owner": alone.owner}):
            with pytest.raises(DatabaseError), transaction.atomic():
                PolicyVersion.objects.create(**row, **second, version=2, loosens=True)
        with pytest.raises(DatabaseError), transaction.atomic():
            PolicyVersion.objects.filter(id=now.row.id).update(reason="Another.")


def test_a_change_looks_at_the_version_that_it_was_made_from(house: House) -> None:
    change(house, STRICTER)
    with pytest.raises(Stale):
        change_policy(house.tenant.id, SHIPPED, expected=0, who=who(), reason="Old.")
    with pytest.raises(InvalidInput):
        change_policy(house.tenant.id, SHIPPED, expected=1, who=who(), reason=" ")


def test_what_is_no_policy_is_refused_by_place() -> None:
    with pytest.raises(InvalidInput) as refused:
        asked_policy({"rules": [{"name": "a", "decision": "perhaps", "reason": "x"}], "more": 1})
    assert [fault["pointer"] for fault in refused.value.data["errors"]] == ["/rules/0/decision", "/more"]
