"""What upper floors lend to approvals: the judgement of edited arguments (R-APPR-3)."""

from decimal import Decimal
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class Judged(NamedTuple):
    """Edited arguments after judgement: their normalised bytes, or None and why they are refused.

    `quorum` people must agree to them; `action_digest` is the action they make, `amount` what it moves
    (None: it moves none, or it cannot be read).
    """

    body: bytes | None
    quorum: int = 1
    action_digest: str = ""
    refusal: str = ""
    amount: Decimal | None = None


class CheckEdit(Protocol):
    """Judges what somebody puts in place of a call's arguments. Called inside the tenant's transaction."""

    def __call__(self, tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any, /) -> Judged:
        """The judgement; nothing is raised for arguments that are refused."""
        ...


class Nobody:
    """Stands in until somebody lends a judgement: every edit is refused."""

    def __call__(self, tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any, /) -> Judged:
        """No."""
        return Judged(None, refusal="edits cannot be judged here")


_CHECK: list[CheckEdit] = [Nobody()]


def register_edit_check(check: CheckEdit) -> None:
    """Lend the judgement. The last one registered counts."""
    _CHECK[:] = [check]


def check_edit(tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any) -> Judged:
    """Judge edited arguments."""
    return _CHECK[0](tenant_id, run_id, call_id, arguments)
