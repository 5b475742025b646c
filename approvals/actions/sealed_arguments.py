"""Sealing of sensitive values in an answer before any of the answer is stored (R-SEC-4)."""

from typing import Any

from approvals.actions.reveal import keep_sealed
from approvals.models import Request
from traces.core.canonical import canonical_outside
from traces.core.redaction import may_hold_secret
from traces.core.sealed_references import Place, with_known, with_sealed
from traces.queries import vault_of


def sealed_answer(request: Request, answer: Any, kept: bytes) -> bytes:
    """Return the answer as stored and passed to the run; `kept` if nothing in it is sensitive.

    An answer extends the task, so its values are allowed in the same places as those of the task. Joins the
    transaction of the decision.
    """
    vault = vault_of(request.tenant_id, request.run_id)
    if vault is None or not (vault.known or may_hold_secret(kept)):
        return kept

    def seal(kind: str, secret: str, member: str) -> str:
        return vault.seal(kind, secret, Place(source="goal", member=member))

    found = canonical_outside(with_known(with_sealed(answer, seal), dict(vault.known), seal))
    keep_sealed(request.tenant_id, request.run_id, vault.bodies)
    return found
