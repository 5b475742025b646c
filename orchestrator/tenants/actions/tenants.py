"""Open, change and suspend tenants, as a platform administrator or from the shell (R-SEC-10).

`by` None is the shell.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction

from budgets.core.ceilings import DEFAULT_TIER, TIERS
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.runs.gateways.job_queue import enqueue_run
from orchestrator.runs.models.run import RunSignal
from orchestrator.tenants.queries.tenants import runs_to_pause
from tenancy.actions import create_tenant
from tenancy.actions.first_administrator import FirstAdministrator, invite_first_administrator
from tenancy.actions.tenants import change_tenant, check_tenant_fields, note_of_tenant, suspend_tenant
from tenancy.core.errors import InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.people.platform_admins import PlatformActor, check_platform_admin

AT_ONCE = 1_000


class NewTenant(NamedTuple):
    """The data of a tenant to open. `administrator` is the e-mail address of its first administrator."""

    slug: str
    name: str
    administrator: str
    administrator_name: str
    time_zone: str = "UTC"
    tier: str = DEFAULT_TIER
    highest_autonomy_tier: int = 6


class OpenedTenant(NamedTuple):
    """A tenant that was opened, and its first administrator."""

    tenant: Tenant
    administrator: FirstAdministrator


def open_tenant(
    asked: NewTenant, *, by: PlatformActor | None = None, tenant_id: UUID | None = None, origin: str = ""
) -> OpenedTenant:
    """Create a tenant, publish the bundled content without the demonstration and invite an administrator.

    Either all of it happens or nothing. Joins the transaction of `tenant_id` if the caller has opened one.
    `origin` is the console's address, for the e-mail.

    Raises: Forbidden, InvalidInput for an invalid value or a slug that is taken.
    """
    fields: dict[str, Any] = {
        "slug": asked.slug, "name": asked.name, "time_zone": asked.time_zone,
        "highest_autonomy_tier": asked.highest_autonomy_tier,
    }  # fmt: skip
    check_tenant_fields(fields)
    _check_tier(asked.tier)
    tenant_id = tenant_id or fresh_id()
    with tenant_transaction(tenant_id):
        check_platform_admin(by)
        try:
            with transaction.atomic():
                made = create_tenant(tenant_id=tenant_id, tier=asked.tier, platform=by is not None, **fields)
        except IntegrityError:
            raise _build_input_error("slug", "taken", f"There is a tenant {asked.slug} already.") from None
        seed_tenant(tenant_id, demonstration=False)
        said = {**fields, "tier": asked.tier}
        note_of_tenant(made, "tenant.create", {}, said, by=by, in_tenant=False)
        try:
            invited = invite_first_administrator(
                tenant_id, asked.administrator, asked.administrator_name, by=by, origin=origin
            )
        except InvalidInput as error:
            fault = error.data["errors"][0]
            raise _build_input_error("administrator", fault["code"], fault["detail"]) from None
    return OpenedTenant(made, invited)


def update_tenant(
    tenant_id: UUID,
    changes: Mapping[str, Any],
    *,
    by: PlatformActor | None,
    reason: str,
    expected: str | None = None,
) -> Tenant:
    """Change name, time zone, tier or highest autonomy of a tenant.

    `expected` is the tag of the state that the caller looked at.

    Raises: Forbidden, NotFound, InvalidInput, Stale.
    """
    if "tier" in changes:
        _check_tier(changes["tier"])
    return change_tenant(tenant_id, changes, by=by, reason=reason, expected=expected)


def suspend_with_runs(tenant_id: UUID, *, by: PlatformActor | None, reason: str) -> int | None:
    """Suspend a tenant, ask each of its unfinished runs to pause and return their number. Outermost verb.

    Returns None if the tenant was suspended already.

    Raises: Forbidden, NotFound, InvalidInput.
    """
    with tenant_transaction(tenant_id):
        if not suspend_tenant(tenant_id, by=by, reason=reason):
            return None
        runs = list(runs_to_pause().values_list("id", flat=True))
        now, payload = database_now(), {"reason": f"The tenant is suspended: {reason.strip()}"[:500]}
        signals = (
            RunSignal(tenant_id=tenant_id, run_id=run, kind="pause", payload=payload, by=None, at=now)
            for run in runs
        )
        RunSignal.objects.bulk_create(signals, batch_size=AT_ONCE)
        for run in runs:
            transaction.on_commit(partial(enqueue_run, run))
        return len(runs)


def _check_tier(tier: str) -> None:
    if tier not in TIERS:
        raise _build_input_error("tier", "unknown", f"One of {', '.join(TIERS)}.")


def _build_input_error(field: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": f"/{field}", "code": code, "detail": detail}])
