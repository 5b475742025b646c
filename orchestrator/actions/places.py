"""The private places that a tenant's tools may reach: versions of one list, each with its reason (P8)."""

from uuid import UUID

from orchestrator.actions.outdating import outdate_proposals
from orchestrator.actions.publish import hold_registry
from orchestrator.core.egress import place_of, wider_places
from orchestrator.core.errors import EgressRefused
from orchestrator.gateways.tools.egress import own_ports
from orchestrator.models import PrivatePlaces
from orchestrator.queries.servers import PlacesNow, places_now
from tenancy.actions import audit
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.errors import InvalidInput, Stale
from tenancy.second_person import ask_second, check_reason

MOST = 100
PLACES = "the private places"
"""What a change of the list is called that waits; no tool is called so."""


def set_places(
    tenant_id: UUID,
    places: tuple[str, ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> PlacesNow:
    """Make exactly these the private `host:port` that tools may reach, from the next call on. Outermost verb:
    owns the transaction.

    `expected` is the version that was looked at, `agreed` who agreed to places that were not there before.
    Raises InvalidInput naming each bad entry, Stale, SecondPersonNeeded.
    """
    wanted = _checked(places)
    check_reason(reason)
    with tenant(tenant_id):
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
        audit(
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


def _checked(places: tuple[str, ...]) -> tuple[str, ...]:
    found, faults = [], []
    for number, text in enumerate(places):
        try:
            place = place_of(text.strip())
            _not_ours(place)
            found.append(place)
        except EgressRefused as refused:
            faults.append(
                {"pointer": f"/places/{number}", "code": "invalid", "detail": refused.data["detail"]}
            )
    if len(places) > MOST:
        faults.append({"pointer": "/places", "code": "invalid", "detail": f"At most {MOST} places."})
    if faults:
        raise InvalidInput(errors=faults)
    return tuple(sorted(dict.fromkeys(found)))


def _not_ours(place: str) -> None:
    """The ports of our own database and broker. Raises EgressRefused."""
    port = int(place.rpartition(":")[2])
    if port in own_ports():
        raise EgressRefused(detail=f"port {port} belongs to Interlock's own servers")
