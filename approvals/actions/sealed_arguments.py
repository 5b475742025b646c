"""What is sensitive in an answer is sealed before anything of the answer is kept (R-SEC-4)."""

from typing import Any

from approvals.actions.reveal import keep_sealed
from approvals.models import Request
from traces.core.canonical import canonical_outside
from traces.core.redaction import may_hold_secret
from traces.core.sealed_references import Place, with_known, with_sealed
from traces.queries import vault_of


def sealed_answer(request: Request, answer: Any, kept: bytes) -> bytes:
    """The answer as it is kept and told the run: `kept` where nothing in it is sensitive. It adds to the
    task, so its values go where those of the task may go. Joins the transaction of the decision."""
    vault = vault_of(request.tenant_id, request.run_id)
    if vault is None or not (vault.known or may_hold_secret(kept)):
        return kept

    def seal(kind: str, secret: str, member: str) -> str:
        return vault.seal(kind, secret, Place(source="goal", member=member))

    found = canonical_outside(with_known(with_sealed(answer, seal), dict(vault.known), seal))
    keep_sealed(request.tenant_id, request.run_id, vault.bodies)
    return found
