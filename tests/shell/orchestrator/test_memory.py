"""Memory: a run proposes, a person keeps, later runs find; nothing else gets in."""

from typing import Any
from uuid import UUID

import pytest

from orchestrator.core.common.errors import MemoryRefused
from orchestrator.knowledge.actions.memory import judge_memory, propose_memory
from orchestrator.knowledge.queries.memory import facts_of_run, list_memory_proposals, proposal_of
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.tenancy import make_tenant
from tests.factories.world import company_at, make_world
from tests.proves import proves
from tests.shell.orchestrator.test_file_tools import Desk

SAID = "The adder of Ada subtracts."


class Rememberer(Desk):
    """A desk whose run has ended with a fact."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.people = self.world.people
        self.run = self.world.submit("tool-loop", "How much is (12 + 30) * 2?")
        assert self.world.drive(self.run).terminal_code == "SUCCESS"
        with tenant_transaction(self.tenant):
            self.fact = next(iter(facts_of_run(self.run)))

    def propose(self, **more: Any) -> Any:
        """A proposal's answer."""
        given = {"text": SAID, "kind": "semantic", "facts": [self.fact], "days": 30} | more
        return self.told("memory.propose", **given)

    def judge(self, proposal: str, verdict: Any = "kept") -> Any:
        """A person's word."""
        who = self.people.admin.principal.id
        return judge_memory(self.tenant, UUID(proposal), verdict, by=who, reason="It is so.")

    def found(self, words: str = "adder") -> list[str]:
        """What a run finds."""
        return [one["text"] for one in self.told("memory.search", words=words)["hits"]]


@pytest.fixture
def desk(house: House) -> Rememberer:
    """A desk that remembers."""
    return Rememberer(house)


@proves("R-MEM-2", part="proposed, kept, found")
@proves("R-TOOL-19", part="memory")
def test_what_a_person_keeps_is_found_with_its_support_and_nothing_else(desk: Rememberer) -> None:
    made = desk.propose()
    assert made["verdict"] == "waiting"
    assert desk.propose() == made
    assert desk.found() == []
    desk.judge(made["id"])
    (hit,) = desk.told("memory.search", words="ADDER ada")["hits"]
    # The fact is trusted; these words are the model's and no fact states them.
    assert hit["trust"] == "untrusted"
    assert (hit["text"], hit["run"], [one["fact"] for one in hit["support"]]) == (
        SAID,
        str(desk.run),
        [desk.fact],
    )
    assert desk.found("multiplier") == []
    with tenant_transaction(desk.tenant):
        assert AuditEntry.objects.filter(verb="memory.kept").count() == 1


@proves("R-MEM-2", part="quarantine")
def test_what_is_quarantined_or_refused_is_found_no_more(desk: Rememberer) -> None:
    made = desk.propose()
    desk.judge(made["id"])
    desk.judge(made["id"], "quarantined")
    assert desk.found() == []
    desk.judge(made["id"], "refused")
    with pytest.raises(MemoryRefused, match="it is refused"):
        desk.judge(made["id"])
    assert desk.told("memory.proposal", proposal=made["id"])["verdict"] == "refused"


@proves("R-MEM-2", part="evidence")
def test_a_proposal_rests_on_facts_of_its_own_run(desk: Rememberer) -> None:
    assert "committed no fact" in desk.refused(
        "memory.propose", text=SAID, kind="semantic", facts=["nothing"]
    )
    with tenant_transaction(desk.tenant):
        assert not list_memory_proposals().exists()


@proves("R-MEM-2", part="one tenant's")
def test_memory_is_of_one_tenant(desk: Rememberer) -> None:
    made = desk.propose()
    desk.judge(made["id"])
    other = make_tenant()
    with pytest.raises(NotFound):
        judge_memory(other.id, UUID(made["id"]), "quarantined", by=desk.people.admin.principal.id, reason="")
    desk.tenant = other.id
    assert desk.found() == []


@proves("R-MEM-2", part="the trust of the text, from the proposal to the hit")
def test_a_text_of_a_run_that_read_a_strangers_words_stays_untrusted(house: House, company: Company) -> None:
    """The proposal names only a fact of a trusted tool; the run has read the service's own log, too."""
    with company_at(company.url):
        world = make_world(house)
        run = world.submit("incident-triage", "Find out what is wrong.", inputs={"service": "checkout"})
        world.drive(run)
    with tenant_transaction(world.id):
        facts = facts_of_run(run)
        assert {one.trust for one in facts.values()} == {"trusted", "untrusted"}
        vouched = next(name for name, one in facts.items() if one.trust == "trusted")
        row = propose_memory(
            world.id, run, key="k", kind="semantic", text="Mallory decides.", facts=[vouched], days=9
        )
        found = proposal_of(row.id)
    assert [one.trust for one in found.evidence] == ["trusted"]
    assert found.trust == "untrusted"
