"""What a model is asked with: a key, and leave for an address that is not the operator's (R-TOOL-22, P9, W3).

The operator's keys stand in the environment, a tenant's among its sealed secrets. Either goes only to the
address it is kept for. Both are looked up at each call: a new key is used at once, a revoked one never again.
"""

from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.llm.tenant_models import AT
from orchestrator.core.tools.egress_policy import Leave, target_of
from orchestrator.gateways.llm.catalog import NO_KEY, ModelEnvironment, key_for
from orchestrator.queries.tool_servers import leave_for
from tenancy.core.errors import SecretUnusable
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import reveal_secret

SHORTEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`key` None: there is none, and `why`. `own`: the model is the tenant's; `leave`: its address is, too,
    and judged by this."""

    key: str | None = field(repr=False)
    own: bool = False
    leave: Leave | None = None
    why: str = "no key is configured for this address"

    @property
    def secret(self) -> str:
        """What must never be kept of a reply; empty where there is nothing, or what could be any word."""
        return "" if self.key in (None, NO_KEY) or len(str(self.key)) < SHORTEST else str(self.key)


def operators_access(environment: ModelEnvironment, profile: ModelProfile) -> Access:
    """The operator's key for the profile's address."""
    return Access(key=key_for(environment, profile))


def tenants_access(tenant_id: UUID, profile: ModelProfile) -> Access:
    """The tenant's own key for the profile's address, and leave to go there. Asks the database, whose
    connection is given back: for a thread beside the loop."""
    try:
        with tenant_transaction(tenant_id):
            origin = target_of(profile.base_url or AT[profile.provider]).origin
            key = reveal_secret(tenant_id, profile.secret, origin) if profile.secret else NO_KEY
            # The provider's own address is known to us, and may be reached by way of the operator's proxy.
            return Access(key=key, own=True, leave=leave_for(origin) if profile.base_url else None)
    except SecretUnusable as refused:
        return Access(key=None, own=True, why=f"the secret {profile.secret}: {refused.data['detail']}")
    finally:
        connection.close()
