"""The credentials of a model call: a key, and the egress permission for a tenant's own address.

The operator's keys are in the environment, a tenant's among its sealed secrets. Either key is only sent to
the address that it is kept for. Keys are looked up for each call: a new key is used at once, a revoked key
never again.

Spec: R-TOOL-22, P9, W3.
"""

from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.llm.tenant_models import AT
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from orchestrator.llm.gateways.catalog import NO_KEY, ModelEnvironment, key_for
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import SecretUnusable
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import reveal_secret

SHORTEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The credentials of one call.

    `key` is None where there is no key; `why` gives the reason. `own`: the tenant configured the model.
    `leave` is the egress permission that the connection is checked against where the address is the
    tenant's, too.
    """

    key: str | None = field(repr=False)
    own: bool = False
    leave: EgressPolicy | None = None
    why: str = "no key is configured for this address"

    @property
    def secret(self) -> str:
        """The key to remove from replies; empty without a key, or for a key shorter than SHORTEST.

        A short key could equal an ordinary word of a reply.
        """
        return "" if self.key in (None, NO_KEY) or len(str(self.key)) < SHORTEST else str(self.key)


def operators_access(environment: ModelEnvironment, profile: ModelProfile) -> Access:
    """Return the operator's key for the profile's address."""
    return Access(key=key_for(environment, profile))


def tenants_access(tenant_id: UUID, profile: ModelProfile) -> Access:
    """Return the tenant's own key for the profile's address, and the permission to connect there.

    Queries the database and closes the connection afterwards: call it in a worker thread, not in the event
    loop.
    """
    try:
        with tenant_transaction(tenant_id):
            origin = target_of(profile.base_url or AT[profile.provider]).origin
            key = reveal_secret(tenant_id, profile.secret, origin) if profile.secret else NO_KEY
            # The provider's public address is known and may be reached through the operator's proxy.
            return Access(key=key, own=True, leave=leave_for(origin) if profile.base_url else None)
    except SecretUnusable as refused:
        return Access(key=None, own=True, why=f"the secret {profile.secret}: {refused.data['detail']}")
    finally:
        connection.close()
