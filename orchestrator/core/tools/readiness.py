"""What a run's tools lack when it is admitted: what nobody has set up, and credentials that will not last
(R-TOOL-6, R-TOOL-13).

Both are pinned, so a replay shows the model what the run did. A fixed call of a workflow is made all the
same: what it lacks may have been set up meanwhile, and its failure has an edge of its own.
"""

from datetime import datetime
from typing import NamedTuple

from orchestrator.core.domain.run_state import Call
from orchestrator.core.workflow.node_protocol import NodeContext


class Life(NamedTuple):
    """How long a secret that is kept lasts; `renews`: a new one is had by itself."""

    expires_at: datetime | None
    renews: bool


class Lack(NamedTuple):
    """What is wrong with a tool's credential: it cannot be called with it, or may not to the end."""

    gone: str = ""
    soon: str = ""


def credential_lack(secret: str, life: Life | None, at: datetime, until: datetime) -> Lack:
    """What a run from `at` to `until` at the latest has to fear of a secret; `life` None: none is kept."""
    if life is None:
        return Lack(gone=f"its secret {secret} is not kept any more")
    if life.expires_at is None or life.renews:
        return Lack()
    if life.expires_at <= at:
        return Lack(gone=f"its secret {secret} expired at {life.expires_at:%Y-%m-%d %H:%M} UTC")
    if life.expires_at <= until:
        said = f"its secret {secret} expires at {life.expires_at:%Y-%m-%d %H:%M} UTC"
        return Lack(soon=f"{said}, before a run of this kind has to be over")
    return Lack()


def left_out(view: NodeContext, call: Call) -> str | None:
    """Why a model may not call a tool that it was not shown; None where it may."""
    return view.pins.left_out.get(call.tool) if call.by == "model" else None
