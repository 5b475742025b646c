"""A run whose next effect is one call, workers that die over it, and how its end is judged."""

from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from tenancy.db.ids import fresh_id
from tests.doubles.company import Company
from tests.factories.dying import Killed, dies_at
from tests.factories.foreign import Obedient, to_the_end
from tests.factories.world import World
from tests.journeys.interleaving.clock import Clock

READ, KEYED, FINDABLE, BLIND = "orders.lookup", "payments.refund", "mail.send", "ledger.post"
ASKED: dict[str, tuple[str, dict[str, str]]] = {
    READ: ("orders", {"order_id": "A-1001"}),
    KEYED: ("payments", {"order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "late"}),
    FINDABLE: ("mail", {"to": "a@b.example", "subject": "Yours", "text": "Hello", "reference": "r-1"}),
    BLIND: ("ledger", {"account": "refunds", "amount": "-10.00", "memo": ""}),
}
# A slow company is told to go on: how long what comes before that takes is the machine's.
UNTIL_TOLD = 3_600


@dataclass(kw_only=True)
class Case:
    """A run whose next effect is the call of one tool, agreed to where people must agree."""

    world: World
    company: Company
    clock: Clock
    server: Obedient
    run: UUID
    tool: str

    def effects(self) -> int:
        """How often the company did it; a look-up leaves no trace there and counts as none."""
        return len(self.company.effects(ASKED[self.tool][0]))

    def resolutions(self) -> list[str]:
        """What recovery said of effects that were in flight."""
        return [said["resolution"] for said in self.world.said(self.run, "call_recovered")]

    def dies(self, point: str, times: int = 1) -> None:
        """A worker takes the run and dies at a point, when it comes there for the nth time."""
        dying = replace(self.world.worker, name=fresh_id().hex, fault=dies_at(point, times))
        with pytest.raises(Killed):
            dying.advance(self.run)
        self.clock.lease_dies(self.run)


def judge(case: Case, verdict: str, effects: int, resolutions: list[str]) -> None:
    """The run's end, what the company did, what recovery said, and a whole trace."""
    found = to_the_end(case.world, case.run, verdict)
    assert found.terminal_code == ("USER_CANCEL" if verdict == "cancel" else "SUCCESS"), found.reason
    assert case.effects() == effects
    assert [word for word in case.resolutions() if word != "lost"] == resolutions
    assert case.server.violations == []
    case.world.sound(case.run)
