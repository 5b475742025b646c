"""The private places that a tenant's tools may reach: versions of one list, each with its reason (P8)."""

from uuid import UUID

from django.conf import settings

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.egress_policy import EgressPolicy, Target, place_of, target_of, wider_places
from orchestrator.publishing.actions.versions import hold_registry
from orchestrator.tools.actions.address_checks import refusals_of
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from orchestrator.tools.models.tool_server import PrivatePlaces
from orchestrator.tools.queries.tool_servers import PlacesNow, leave_with, places_now
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import ask_second, check_reason

MOST = 100
PLACES = "the private places"
"""The name of a waiting change of this list, where other changes have the name of their tool."""


def set_places(
    tenant_id: UUID,
    places: tuple[str, ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> PlacesNow:
    """Replace the list of private `host:port` that tools may reach, from the next call on.

    Outermost verb: owns the transaction. `expected` is the version that was shown to the person, `agreed` the
    administrator who agreed to places that were not in it.

    Raises: InvalidInput naming each bad entry, Stale, SecondPersonNeeded.
    """
    wanted = look_at_places(tenant_id, places)
    return set_looked_at_places(tenant_id, wanted, expected=expected, by=by, reason=reason, agreed=agreed)


def set_looked_at_places(
    tenant_id: UUID,
    wanted: tuple[str, ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> PlacesNow:
    """Replace the list by places that `look_at_places` has checked, without asking the network again.

    Opens or joins the transaction. See `set_places`.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        before = places_now()
        if expected is not None and expected != before.version:
            raise Stale
        if wanted == before.places:
            return before
        ask_second(
            tenant_id, PLACES, wider_places(before.places, wanted), by=by, agreed=agreed, reason=reason,
            tag=str(before.version),
        )  # fmt: skip
        PrivatePlaces.objects.create(
            tenant_id=tenant_id, version=before.version + 1, places=list(wanted), reason=reason[:500], by=by,
            at=database_now(),
        )  # fmt: skip
        write_audit_entry(
            tenant_id, by, verb="egress.private", object="egress:private",
            before={"version": before.version, "places": list(before.places)},
            after={
                "version": before.version + 1, "places": list(wanted),
                **({} if agreed is None else {"agreed_by": str(agreed)}),
            },
            reason=reason,
        )  # fmt: skip
        outdate_proposals(tenant_id)
        return places_now()


def look_at_places(tenant_id: UUID, places: tuple[str, ...]) -> tuple[str, ...]:
    """Check a list of private places and return it in normal form.

    Each name that is new on it is resolved over the network, and must not lead to an address that the
    operator forbids; a name that does not resolve yet is accepted, and judged when it is connected to.

    Raises: InvalidInput naming each bad entry.
    """
    with tenant_transaction(tenant_id):
        standing = frozenset(places_now().places)
    found: dict[int, str] = {}
    faults: dict[int, str] = {}
    for number, text in enumerate(places[:MOST]):
        try:
            found[number] = _parse_private_host(text.strip(), standing)
        except EgressRefused as refused:
            faults[number] = str(refused.data["detail"])
    fresh = {
        number: _build_host_permission(place) for number, place in found.items() if place not in standing
    }
    for number, refusal in zip(fresh, refusals_of(list(fresh.values())), strict=True):
        # A name that nobody answers for yet is judged when it is connected.
        if refusal is not None and not refusal.data.get("unresolved"):
            faults[number] = str(refusal.data["detail"])
    errors = [
        {"pointer": f"/places/{number}", "code": "not-allowed", "detail": why}
        for number, why in sorted(faults.items())
    ]
    if len(places) > MOST:
        errors.append({"pointer": "/places", "code": "not-allowed", "detail": f"At most {MOST} places."})
    if errors:
        raise InvalidInput(errors=errors)
    return tuple(sorted(dict.fromkeys(found.values())))


def _parse_private_host(text: str, standing: frozenset[str]) -> str:
    """An entry in its one form. Raises EgressRefused for one that is new and that no address could open."""
    place = place_of(text)
    target = target_of(f"http://{place}")
    bound = settings.INTERLOCK_PRIVATE_PLACES
    if place not in standing and not any(one.may_cover(target.host, target.port) for one in bound):
        raise EgressRefused(detail="the operator lets no tenant open it (INTERLOCK_PRIVATE_PLACES)")
    return place


def _build_host_permission(place: str) -> tuple[Target, EgressPolicy]:
    """A place as it would be connected, were it on the list."""
    target = target_of(f"http://{place}")
    return target, leave_with((place,), target.origin)
