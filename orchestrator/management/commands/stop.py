"""`manage.py stop set|list|lift`: the emergency stop (R-SEC-9)."""

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from orchestrator.console.queries.system_status import ended_by, stops_in_force
from orchestrator.runs.actions.emergency_stop import lift_stop, stop_everything
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug

SCOPES = ("global", "tenant", "workflow", "tool")
NAMED = ("workflow", "tool")


class Command(BaseCommand):
    """Puts a stop in force, before the next effect of any run; shows those in force; lifts one."""

    help = "Stop everything, a tenant, a workflow or a tool at once, and let it go on again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Three verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        put = verbs.add_parser("set", help="`stop set tool payments.refund --tenant demo --reason …`")
        put.add_argument("scope", choices=SCOPES)
        put.add_argument("target", nargs="?", default="", help="the workflow's or tool's name")
        put.add_argument("--tenant", metavar="SLUG", help="whose; every scope but global needs it")
        put.add_argument("--reason", required=True)
        put.add_argument("--yes", action="store_true", help="do not ask once more: for scripts")
        verbs.add_parser("list")
        gone = verbs.add_parser("lift")
        gone.add_argument("stop", type=UUID)
        gone.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it; the id of a new stop is printed alone on standard output."""
        getattr(self, f"_{options['verb']}")(options)

    def _set(self, options: dict[str, Any]) -> None:
        scope, target = options["scope"], options["target"]
        if (scope in NAMED) != bool(target):
            said = "names its target" if scope in NAMED else "has no target"
            raise CommandError(f"a stop of scope {scope} {said}")
        house = None if scope == "global" else _house(options["tenant"]).id
        if scope == "global" and options["tenant"]:
            raise CommandError("a global stop is nobody's own")
        self._ask_once_more(scope, target, house, sure=options["yes"])
        stop = stop_everything(scope, tenant_id=house, target=target, by=None, reason=options["reason"])
        self.stdout.write(str(stop.id))

    def _ask_once_more(self, scope: str, target: str, house: UUID | None, *, sure: bool) -> None:
        """Say on standard error what the stop ends, and wait for a yes. Raises CommandError without one."""
        houses = [house] if house else list(Tenant.objects.order_by("id").values_list("id", flat=True))
        self.stderr.write(_ends(_counts(houses, scope, target)))
        if sure:
            return
        self.stderr.write(f"Put the stop of {f'{scope} {target}'.strip()} in force? [y/N] ", ending="")
        try:
            answer = input()
        except EOFError:
            raise CommandError("nobody answered, so no stop is in force; a script says --yes") from None
        if answer.strip().lower() not in ("y", "yes"):
            raise CommandError("no stop is in force")

    def _list(self, options: dict[str, Any]) -> None:
        names = dict(Tenant.objects.values_list("id", "slug"))
        for stop in stops_in_force():
            whose = names.get(stop.tenant_id, "") if stop.tenant_id else "everybody"
            what = f"{stop.scope} {stop.target}".strip()
            self.stdout.write(
                f"{stop.id}  {whose}  {what}  since {stop.at:%Y-%m-%d %H:%M:%S%z}  {stop.reason}"
            )

    def _lift(self, options: dict[str, Any]) -> None:
        found = next((stop for stop in stops_in_force() if stop.id == options["stop"]), None)
        if found is None or not lift_stop(
            found.id, tenant_id=found.tenant_id, by=None, reason=options["reason"]
        ):
            raise CommandError("no such stop is in force")
        self.stdout.write("lifted")


def _counts(houses: Iterable[UUID], scope: str, target: str) -> int | None:
    """Return how many runs the stop ends in these tenants, or None for a tool's, which ends none itself."""
    ended = 0
    for house in houses:
        with tenant_transaction(house):
            found = ended_by(scope, target)
        if found is None:
            return None
        ended += found
    return ended


def _ends(runs: int | None) -> str:
    if runs is None:
        return "It ends no run by itself: every run that asks for this tool is denied it."
    if not runs:
        return "No run is under way there: it ends none; those submitted later end before their first effect."
    many = f"{runs} runs are under way there: they end"
    under_way = "1 run is under way there: it ends" if runs == 1 else many
    return f"{under_way} as cancelled, and nothing goes on when the stop is lifted."


def _house(slug: str | None) -> Tenant:
    found = tenant_by_slug(slug) if slug else None
    if found is None:
        raise CommandError(f"there is no tenant {slug!r}" if slug else "whose? say --tenant")
    return found
