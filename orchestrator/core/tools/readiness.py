"""Readiness of a run's tools at admission: missing setup, and expiring credentials.

Both are pinned, so a replay shows the model the same tools as the run did. A fixed call of a workflow is made
anyway: the missing setup may have been completed since, and its failure has an edge of its own.

Spec: R-TOOL-6, R-TOOL-13.
"""

from datetime import datetime
from typing import NamedTuple

from orchestrator.core.domain.run_state import Call
from orchestrator.core.workflow.node_protocol import NodeContext


class Life(NamedTuple):
    """The lifetime of a stored secret; `renews`: a new one is obtained automatically."""

    expires_at: datetime | None
    renews: bool


class CredentialProblem(NamedTuple):
    """The problem with a tool's credential: unusable now (`gone`), or possibly before the end (`soon`)."""

    gone: str = ""
    soon: str = ""


def credential_lack(secret: str, life: Life | None, at: datetime, until: datetime) -> CredentialProblem:
    """Return the problem of a secret for a run from `at` to `until` at the latest.

    `life` None: no secret is stored.
    """
    if life is None:
        return CredentialProblem(gone=f"its secret {secret} is not kept any more")
    if life.expires_at is None or life.renews:
        return CredentialProblem()
    if life.expires_at <= at:
        return CredentialProblem(gone=f"its secret {secret} expired at {life.expires_at:%Y-%m-%d %H:%M} UTC")
    if life.expires_at <= until:
        said = f"its secret {secret} expires at {life.expires_at:%Y-%m-%d %H:%M} UTC"
        return CredentialProblem(soon=f"{said}, before a run of this kind has to be over")
    return CredentialProblem()


def left_out(view: NodeContext, call: Call) -> str | None:
    """Return why a model may not call a tool that it was not shown, or None if it may."""
    return view.pins.left_out.get(call.tool) if call.by == "model" else None
