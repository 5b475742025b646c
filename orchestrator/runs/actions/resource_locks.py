"""Lock what a call writes to: claimed in the commit of its intent, released with its outcome (G10).

The claim of a worker that died ends with the time that its intent allows for.
"""

from collections.abc import Iterable
from typing import Any

import psycopg

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.read_phase import InputsChanged, RetryContext
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.workflow.node_protocol import Settlement

GRACE_SECONDS = 60.0
CLAIM = """
INSERT INTO orchestrator_conflictclaim AS c (id, tenant_id, key, run_id, effect, until)
SELECT gen_random_uuid(), %(tenant)s, k, %(run)s, %(effect)s,
       clock_timestamp() + make_interval(secs => %(seconds)s)
  FROM unnest(%(keys)s::text[]) AS k ORDER BY k
ON CONFLICT (tenant_id, key) DO UPDATE SET run_id = EXCLUDED.run_id, effect = EXCLUDED.effect,
  until = EXCLUDED.until
WHERE c.until <= clock_timestamp() OR c.run_id = EXCLUDED.run_id
RETURNING key"""
LET_GO = """
UPDATE orchestrator_conflictclaim SET until = clock_timestamp()
 WHERE tenant_id = %(tenant)s AND run_id = %(run)s AND effect = ANY(%(effects)s::text[])"""


class ResourceTaken(InputsChanged):
    """Another run writes to the same thing at the moment."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys

    def teach(self, learnt: RetryContext) -> None:
        """Pass on the keys that are taken."""
        learnt.busy = tuple(sorted({*learnt.busy, *self.keys}))


def claim_resource_locks(
    hand: ClaimedRun, effects: Iterable[CallModel | CallTool], cursor: "psycopg.Cursor[Any]"
) -> None:
    """Claim the resources that these effects write to. Joins the commit's transaction.

    Raises: Taken.
    """
    for effect in effects:
        if not isinstance(effect, CallTool) or not effect.conflicts:
            continue
        values = {
            "tenant": hand.tenant, "run": hand.run, "effect": effect.id, "keys": list(effect.conflicts),
            "seconds": effect.timeout_ms / 1000 + GRACE_SECONDS,
        }  # fmt: skip
        mine = {row[0] for row in cursor.execute(CLAIM, values).fetchall()}
        if taken := tuple(key for key in effect.conflicts if key not in mine):
            raise ResourceTaken(taken)


def let_go(hand: ClaimedRun, settlements: Iterable[Settlement], cursor: "psycopg.Cursor[Any]") -> None:
    """Release the claims of settled effects. Joins the commit's transaction."""
    over = [s.effect for s in settlements if s.effect in hand.state.pending]
    if held := [effect for effect in over if hand.state.pending[effect].claims]:
        cursor.execute(LET_GO, {"tenant": hand.tenant, "run": hand.run, "effects": held})
