"""A tenant in which every field that people, programs or models may write is hostile, and its pages."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

import psycopg

from approvals.actions.assignment import AssignmentChange, update_assignment
from approvals.actions.grace_period import end_deferred_approval
from approvals.actions.undo_settings import set_undo_window
from approvals.core.assignment import AssignmentAction
from approvals.core.undo import Fate
from approvals.models import Deferral, Request
from budgets.actions.ceilings import change_ceilings
from budgets.actions.prices import state_price
from budgets.actions.rates import change_rates
from budgets.core.ceilings import Ceilings
from budgets.core.pricing import ModelPrice
from budgets.core.rates import Rates
from orchestrator.core.policy.rules import Policy
from orchestrator.notifications.actions.webhook_retention import keep_log
from orchestrator.policies.actions.policy_versions import ChangeAuthor, change_policy
from orchestrator.policies.queries.policies import policy_now
from orchestrator.reviews.actions.review_queue import answer_review
from orchestrator.runs.actions.emergency_stop import stop_everything
from orchestrator.tools.actions.destinations import set_web
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.relaxation_proposals import drop_tool_proposal
from tenancy.actions import add_member
from tenancy.actions.sign_in import begin_attempt, remember_device
from tenancy.core.reach import read_address
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import WebhookAttempt
from tenancy.web.client_address import Visitor
from tests.doors.api.doors import some_proposal
from tests.doors.pages.people import at, refund
from tests.doors.pages.test_every_page import EVERY, address, belongings
from tests.doubles.company import Company
from tests.factories.hostile import BITS, taint
from tests.factories.second_factor import set_rules
from tests.factories.undoing import put_class
from tests.factories.world import World, company_at

TABS = ("plan", "messages", "ledger", "audit", "facts", "files", "raw")
# A control character in a goal is refused as unsafe; everything else goes on.
SHORT = "".join(BITS)[:60]
SAID = " ".join(("F-goal", *BITS, " " * 10_000, "W" * 400)).replace("\x1b", "")


def hostile_house(world: World, company: Company, superuser: psycopg.Connection[Any]) -> list[str]:
    """Make it, and name the address of every page of it. The last is a request's that waits."""
    with company_at(company.url):
        things = belongings(world)
    waiting = refund(world, company, objective=SAID, reason=SAID[:300])
    whole = refund(world, company, objective=SAID, whole=True, order_id="A-1003")
    (asked,) = world.open_requests(waiting)
    with tenant_transaction(world.id):
        settled = Request.objects.filter(run_id=whole)[0].id
    _set(world, asked.id)
    put_class(superuser, asked, "local_write")
    _lapsed(world, asked.id)
    put_class(superuser, asked, asked.risk)
    _answered(world, things)
    _signed_in(world)
    taint(superuser, world)
    pages = ["/account/sessions/", *(address(route, things) for route in EVERY)]
    pages += [f"/runs/{waiting}", f"/runs/{whole}", f"/runs/{whole}?rows=each", f"/approvals/{settled}"]
    pages += [*(f"/runs/{whole}?tab={tab}" for tab in TABS), f"/runs/{things['<uuid:run_id>']}?tab=files"]
    pages += [f"/runs/{waiting}/actions?wish=cancel", "/approvals?tab=decided", f"/approvals?open={asked.id}"]
    pages += [f"{path}={quote(SHORT)}" for path in ("/approvals?tool", "/runs?q", "/tenant/audit?object")]
    return [*pages, f"/approvals/{asked.id}"]


def _signed_in(world: World) -> None:
    """Another session of the administrator's, a browser that is known as theirs, a guess at their password,
    and a version of the tenant's rules."""
    set_rules(world.id, minutes=11)
    person, visitor = world.people.admin.person, Visitor(read_address("203.0.113.66"), "Firefox")
    at(world.people.admin)
    remember_device(person, "their device", visitor)
    begin_attempt(person.email, "password", visitor, None)


def _answered(world: World, things: dict[str, str]) -> None:
    """A review that was answered, a proposal that was settled beside one that waits, a version of the policy,
    a letter that was answered, and a second tenant for the administrator."""
    answer_review(
        world.id,
        UUID(things["<uuid:review_id>"]),
        by=world.people.approver.id,
        finding="objected",
        note="Seen",
    )
    who = ChangeAuthor(principal=world.people.admin.id, owner=world.people.admin.person.id)
    drop_tool_proposal(world.id, some_proposal(world.id, "calculator.evaluate"), who=who, reason="No")
    with tenant_transaction(world.id):
        stricter = policy_now().policy.evolve(after_untrusted="deny")
        first = WebhookAttempt.objects.all()[0]
        first.pk, first.number = fresh_id(), 2
        first.save(force_insert=True)
    change_policy(world.id, stricter, expected=None, who=who, reason="More of it")
    # A new version ends what waited.
    change_policy(world.id, Policy(), expected=None, who=who, reason="Less of it")
    add_member(world.people.other_tenant.id, world.people.admin.person, Role.AUDITOR)


def _set(world: World, request: UUID) -> None:
    """What an administrator sets, and what was remarked on a request; each has its reason."""
    by, why = world.people.admin.id, "Because"
    change_ceilings(world.id, Ceilings(daily_usd=Decimal(50)), by=by, reason=why)
    change_rates(world.id, Rates(concurrent_runs=50), by=by, reason=why)
    set_places(world.id, ("10.0.0.9:80",), expected=None, by=by, reason=why)
    set_web(world.id, ("https://docs.python.org/3/",), expected=None, by=by, reason=why, agreed=by)
    keep_log(world.id, 30, expected=None, by=by, reason=why)
    stop_everything("tool", tenant_id=world.id, target="calculator.evaluate", by=by, reason=why)
    price = ModelPrice(
        provider="acme", model="own", input=Decimal("0.000001"), output=Decimal("0.000002"), source="tenant",
        version="",
    )  # fmt: skip
    state_price(world.id, price, by=by, reason=why)
    update_assignment(
        world.id, request, world.people.approver.id, AssignmentChange(kind=AssignmentAction.COMMENT, text=why)
    )
    set_undo_window(world.id, 2, expected=None, by=by, reason=why)


def _lapsed(world: World, request: UUID) -> None:
    """A yes that came to nothing."""
    who = world.people.approver
    with tenant_transaction(world.id):
        asked, now = Request.objects.get(id=request), database_now()
        kept = Deferral.objects.create(
            tenant_id=world.id, request=asked, run_id=asked.run_id, principal=who.id, owner=who.person.id,
            kind="approve", packet_digest=asked.packet_digest, at=now,
            effective_at=now + timedelta(seconds=2),
        )  # fmt: skip
        end_deferred_approval(asked, kept.id, Fate.LAPSED, now, by=None, because="Because")
