"""The one table from an error's code to its HTTP status. A test refuses an error class that is missing here.

500 is for what a caller cannot cause: a breach of our own order. Its data stays in the log.
"""

from __future__ import annotations

from tenancy.core.errors import InterlockError

STATUS: dict[str, int] = {
    "interlock-error": 409,
    # tenancy
    "tenancy-error": 409,
    "outside-tenant": 500,
    "other-tenant": 500,
    "not-found": 404,
    "forbidden": 403,
    "no-tenant": 403,
    "not-confirmed": 403,
    "tenant-suspended": 403,
    "second-factor-missing": 403,
    "last-admin": 409,
    "scope-missing": 403,
    "key-invalid": 401,
    "key-expired": 401,
    "key-revoked": 401,
    "key-elsewhere": 401,
    "workflow-out-of-reach": 403,
    "role-lacking": 409,
    "key-too-wide": 403,
    "key-gone": 409,
    "link-refused": 409,
    "administrator-there": 409,
    "signed-out": 401,
    "invalid-input": 400,
    "parameter-unknown": 400,
    "parameter-repeated": 400,
    "idempotency-key-reused": 422,
    "idempotency-key-in-use": 409,
    "secret-unusable": 409,
    "related-to-person": 403,
    "not-independent": 403,
    "not-signed-in": 409,
    "nothing-to-confirm": 409,
    # traces
    "trace-error": 409,
    "not-canonical": 500,
    "content-erased": 410,
    "sealed-value-gone": 410,
    "not-an-export": 422,
    "too-many-viewers": 429,
    # approvals
    "approval-error": 409,
    "not-yours": 403,
    "already-decided": 409,
    "request-expired": 410,
    "packet-changed": 409,
    "decision-invalid": 422,
    "yes-stands": 409,
    "nothing-to-undo": 409,
    # budgets
    "budget-error": 409,
    "ceiling-reached": 429,
    "ceiling-too-near": 429,
    "over-ceiling": 422,
    "rate-reached": 429,
    "dimension-unknown": 422,
    "amount-invalid": 422,
    "price-unknown": 422,
    "account-missing": 500,
    "account-closed": 409,
    "lane-unbounded": 422,
    "reservations-open": 500,
    "reservation-unknown": 500,
    "ledger-moved": 500,
    # orchestrator
    "orchestrator-error": 409,
    "illegal-move": 409,
    "corrupt-state": 500,
    "misfit-event": 500,
    "content-missing": 500,
    "compile-failed": 422,
    "stale": 412,
    "goal-invalid": 422,
    "scenario-invalid": 500,
    "replay-differs": 500,
    "workflow-unknown": 422,
    "run-over": 409,
    "run-not-over": 409,
    "run-succeeded": 409,
    "retried-already": 409,
    "no-checkpoint": 409,
    "changed-since": 409,
    "effect-in-doubt": 409,
    "effect-not-in-doubt": 409,
    "run-under-way": 409,
    "no-look-up": 409,
    "learnt-late": 409,
    "still-recording": 409,
    "retry-refused": 409,
    "tier-too-high": 403,
    "emergency-stop": 503,
    "no-model": 422,
    "store-full": 507,
    "egress-refused": 422,
    "definition-refused": 422,
    "server-unreachable": 424,
    "name-taken": 409,
    "quarantined": 409,
    "own-proposal": 403,
    "brought-along": 403,
    "proposal-settled": 409,
    "second-person-needed": 409,
    "proposal-open": 409,
    "webhook-off": 409,
    "path-refused": 422,
    "workspace-refused": 422,
    "diff-refused": 422,
    "workspace-moved": 409,
    "memory-refused": 409,
    "queue-in-use": 409,
    "review-refused": 409,
    # config
    "store-unavailable": 503,
}
UNLISTED = 500


def status_of(error: InterlockError) -> int:
    """The HTTP status of an error: its own code's, else that of the nearest ancestor listed, else 500."""
    for kind in type(error).__mro__:
        if (code := getattr(kind, "code", None)) in STATUS:
            return STATUS[code]
    return UNLISTED
