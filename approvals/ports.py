"""What upper floors lend to approvals: the judgement of edited arguments (R-APPR-3)."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID


class Judged(NamedTuple):
    """Edited arguments after judgement: their normalised bytes, how many must agree, the action, or why they are refused."""

    body: bytes | None
    quorum: int = 1
    action_digest: str = ""
    refusal: str = ""


CheckEdit = Callable[[UUID, UUID, str, Any], Judged]
_CHECK: list[CheckEdit] = []


def register_edit_check(check: CheckEdit) -> None:
    """Lend the judgement: (tenant, run, call, arguments) → Judged. The last one registered counts."""
    _CHECK[:] = [check]


def check_edit(tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any) -> Judged:
    """Judge edited arguments; without a lender every edit is refused."""
    if not _CHECK:
        return Judged(None, refusal="edits cannot be judged here")
    return _CHECK[0](tenant_id, run_id, call_id, arguments)
