"""Setting the rules of signing in by page, API and command; a loosening waits (R-SEC-11)."""

from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from approvals.models import Request
from budgets.actions import newest_ceilings
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.actions.sign_in_rules import set_sign_in_rules
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area, SignInRules
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, SignInRulesVersion
from tenancy.people.dual_control import ALONE
from tenancy.people.sign_in_rules import RulesNow, sign_in_rules_now
from tests.conftest import House
from tests.doors.api.program import program, refusal
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import Form, forms_of
from tests.doors.pages.test_second_factor import HOUR, asks
from tests.doors.pages.test_second_factor import admin as admin
from tests.doors.pages.test_second_factor import forgotten as forgotten
from tests.factories.approvals import Desk
from tests.factories.second_factor import code_now, enrol, set_rules, show_factor
from tests.factories.tenancy import make_somebody
from tests.proves import proves

PAGE, WAITING = "/tenant/sign-in-rules", "/tool-proposals"
STRICT = {"second_factor": ["admin"], "ask_again": ["money", "keys"], "minutes": 5, "reason": "We got bigger"}
NOTHING = {"second_factor": [], "ask_again": [], "minutes": 5, "reason": "Too much"}


def rules(house: House) -> RulesNow:
    """The rules in force."""
    with tenant_transaction(house.tenant.id):
        return sign_in_rules_now()


def proposal(house: House) -> ToolProposal:
    """The one that was asked for last."""
    with tenant_transaction(house.tenant.id):
        return ToolProposal.objects.order_by("-id")[0]


def form(answer: Any) -> Form:
    """The form of the rules."""
    return next(form for form in forms_of(answer) if "minutes" in form.fields)


@proves("R-SEC-11", part="tightening the rules holds at once, and is audited")
def test_stricter_rules_hold_at_once(house: House) -> None:
    client = browser(house.people.admin)
    show_factor(client, enrol(house.people.admin.person))
    make_somebody(house.tenant, Role.ADMIN)
    done = client.post(PAGE, {**form(client.get(PAGE)).fields, **STRICT})
    assert done.status_code == 302
    now = rules(house)
    assert now.rules == SignInRules(
        second_factor=frozenset({Role.ADMIN}), ask_again=frozenset({Area.MONEY, Area.KEYS}), minutes=5
    )
    assert (now.version, now.by) == (1, house.people.admin.id)
    with tenant_transaction(house.tenant.id):
        said = AuditEntry.objects.get(verb="sign_in.rules")
    assert (said.before["second_factor"], said.after["second_factor"]) == ([], ["admin"])
    assert "We got bigger" in words(client.get(PAGE))


@proves("R-SEC-11", part="rules of signing in that ask for less wait for a second administrator")
def test_rules_that_ask_for_less_wait_for_another_administrator(house: House) -> None:
    second = make_somebody(house.tenant, Role.ADMIN)
    set_rules(house.tenant.id, roles=[Role.ADMIN], areas=[Area.KEYS], minutes=5)
    mine, theirs = browser(house.people.admin), browser(second)
    show_factor(mine, enrol(house.people.admin.person))
    factor = enrol(second.person)
    show_factor(theirs, factor, ago=HOUR)
    waits = mine.post(PAGE, {**form(mine.get(PAGE)).fields, **NOTHING})
    assert (waits.status_code, waits.headers["Location"]) == (302, WAITING)
    row = proposal(house)
    assert (row.kind, len(row.weaker)) == ("sign_in", 2)
    assert rules(house).version == 1
    assert "No second factor is needed any more by: admin." in words(theirs.get(WAITING))
    yes = {"proposal": str(row.id), "reason": "Yes", "agree": "agree"}
    assert "you asked for it" in words(mine.post(WAITING, yes)).lower()
    # The yes loosens as the change itself does: the factor is asked for again.
    assert asks(theirs.post(WAITING, yes))
    show_factor(theirs, factor)
    assert theirs.post(WAITING, yes).status_code == 302
    assert rules(house).rules == SignInRules(minutes=5)
    with tenant_transaction(house.tenant.id):
        said = SignInRulesVersion.objects.get(version=2)
        assert (said.by, said.agreed_by) == (house.people.admin.id, second.id)


@proves("R-SEC-11", part="one administrator alone loosens the rules with a reason, shown on the overview")
def test_the_only_administrator_loosens_the_rules_alone_and_it_is_shown(house: House) -> None:
    set_rules(house.tenant.id, areas=[Area.MONEY])
    client = browser(house.people.admin)
    show_factor(client, enrol(house.people.admin.person))
    given = {**form(client.get(PAGE)).fields, **NOTHING}
    assert client.post(PAGE, given | {"reason": " "}).status_code == 422
    assert client.post(PAGE, given).status_code == 302
    assert rules(house).rules.ask_again == frozenset()
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.get(verb=ALONE).reason == "Too much"
    assert "loosened the sign-in rules alone" in words(client.get("/"))


@proves("R-SEC-11", part="whoever would keep themself out is told before")
def test_an_administrator_without_a_factor_is_told_before_they_keep_themself_out(house: House) -> None:
    client = browser(house.people.admin)
    told = client.post(PAGE, {**form(client.get(PAGE)).fields, **STRICT})
    assert told.status_code == 409
    assert "You have no second factor yet. Nothing was changed." in words(told)
    assert rules(house).version == 0
    # Rules for others than themself are set at once.
    others = {**STRICT, "second_factor": ["auditor"], "ask_again": []}
    assert client.post(PAGE, {**form(client.get(PAGE)).fields, **others}).status_code == 302
    sure = {**form(client.get(PAGE)).fields, **STRICT, "second_factor": ["admin", "auditor"], "sure": "yes"}
    assert client.post(PAGE, sure).status_code == 302
    assert client.get(PAGE).status_code == 403


def test_rules_that_somebody_else_set_meanwhile_are_not_overwritten(house: House) -> None:
    client = browser(house.people.admin)
    show_factor(client, enrol(house.people.admin.person))
    seen = form(client.get(PAGE)).fields
    set_rules(house.tenant.id, roles=[Role.AUDITOR])
    assert client.post(PAGE, {**seen, **STRICT}).status_code == 412
    assert rules(house).version == 1


def test_an_auditor_reads_the_rules_and_an_operator_of_another_role_sets_none(house: House) -> None:
    auditor = browser(house.people.auditor)
    assert "Changing the rules needs the role admin." in words(auditor.get(PAGE))
    assert auditor.post(PAGE, STRICT).status_code == 403
    assert rules(house).version == 0


@proves("R-SEC-11", part="the rules of signing in, for programs")
def test_a_program_sets_the_rules_and_a_loosening_is_answered_202(house: House) -> None:
    owner = make_somebody(house.tenant, Role.ADMIN).person
    first, second = (
        program(house.tenant.id, Role.ADMIN, owner=one) for one in (house.people.admin.person, owner)
    )
    assert first.get("/sign-in-rules").json() == {
        "second_factor": [], "ask_again": [], "minutes": 10, "version": 0, "reason": "", "at": None,
    }  # fmt: skip
    done = first.send("put", "/sign-in-rules", STRICT)
    assert (done.status_code, done.json()["version"]) == (200, 1)
    assert done.headers["ETag"] == first.get("/sign-in-rules").headers["ETag"]
    stale = first.send("put", "/sign-in-rules", NOTHING, headers={"If-Match": '"0"'})
    assert refusal(stale) == (412, "stale")
    asked = first.send("put", "/sign-in-rules", NOTHING)
    assert (asked.status_code, asked.json()["kind"]) == (202, "sign_in")
    agree = f"/tool-proposals/{asked.json()['id']}/agree"
    assert refusal(first.post(agree, {"reason": "Mine"})) == (403, "own-proposal")
    agreed = second.post(agree, {"reason": "Yes"})
    assert (agreed.status_code, agreed.json()["second_factor"]) == (200, [])


@proves("R-SEC-11", part="programs are no people: the rules ask them nothing")
def test_a_program_goes_on_under_the_strictest_rules(house: House) -> None:
    key = program(house.tenant.id, Role.ADMIN, owner=house.people.admin.person)
    set_rules(house.tenant.id, roles=list(Role), areas=list(Area))
    assert key.get("/runs").status_code == 200
    made = key.post("/keys", {"role": "client", "name": "more"})
    assert made.status_code == 201


def test_what_waits_is_outdated_by_the_next_version(house: House) -> None:
    make_somebody(house.tenant, Role.ADMIN)
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    key = program(house.tenant.id, Role.ADMIN, owner=house.people.admin.person)
    assert key.send("put", "/sign-in-rules", NOTHING).status_code == 202
    tighter = {**STRICT, "second_factor": ["admin", "auditor"]}
    assert key.send("put", "/sign-in-rules", tighter).status_code == 200
    assert proposal(house).status == "outdated"


def run_command(*words: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("sign_in_rules", *words, stdout=out)
    return out.getvalue()


@proves("R-SEC-11", part="whoever is locked out is let in again at the machine")
def test_the_shell_shows_and_loosens_the_rules_without_a_second_administrator(house: House) -> None:
    make_somebody(house.tenant, Role.ADMIN)
    slug = ("--tenant", house.tenant.slug)
    set_rules(house.tenant.id, roles=[Role.ADMIN], areas=[Area.KEYS], minutes=5)
    assert browser(house.people.admin).get("/runs").status_code == 403
    said = run_command("show", *slug)
    assert said == "second factor: admin\nasked for again: keys\nminutes: 5\nversion: 1\n"
    said = run_command("set", *slug, "--second-factor", "--reason", "Nobody gets in")
    assert said == "second factor: no role\nasked for again: keys\nminutes: 5\nversion: 2\n"
    assert browser(house.people.admin).get("/runs").status_code == 200
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.filter(verb="sign_in.rules", principal=None).count() == 2
    with pytest.raises(CommandError, match="From 1 to 1440 minutes"):
        run_command("set", *slug, "--minutes", "0", "--reason", "x")
    with pytest.raises(CommandError, match="no tenant 'nobody'"):
        run_command("show", "--tenant", "nobody")


@proves("R-SEC-11", part="whoever lost their second factor sets up another")
def test_a_lost_factor_is_taken_away_at_the_machine(house: House) -> None:
    person = house.people.admin.person
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    thief = browser(house.people.admin)
    show_factor(thief, enrol(person))
    assert thief.get("/runs").status_code == 200
    err = StringIO()
    call_command("person", "forget-factor", person.email, "--tenant", house.tenant.slug, stderr=err)
    assert "has no second factor any more; 1 of theirs taken away" in err.getvalue()
    assert "you have none yet" in words(thief.get("/runs"))
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.get(verb="person.forget_factor").before == {"factors": ["totp"]}
    other = house.people.other_tenant.slug
    with pytest.raises(CommandError, match="has no person"):
        call_command("person", "forget-factor", person.email, "--tenant", other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"minutes": 0},
        {"minutes": 1441},
        {"second_factor": ["root"]},
        {"ask_again": ["lunch"]},
        {"version": 1},
    ],
)
def test_the_database_takes_no_rules_that_cannot_be(house: House, wrong: dict[str, Any]) -> None:
    given = {"version": 2, "second_factor": [], "ask_again": [], "minutes": 5, **wrong}
    with tenant_transaction(house.tenant.id):
        SignInRulesVersion.objects.create(
            tenant=house.tenant, version=1, minutes=5, reason="x", at=database_now()
        )
        with pytest.raises(IntegrityError), transaction.atomic():
            SignInRulesVersion.objects.create(tenant=house.tenant, reason="x", at=database_now(), **given)


def test_rules_are_never_rewritten(house: House) -> None:
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    with tenant_transaction(house.tenant.id):
        denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="denied")
        with denied, transaction.atomic():
            raw_cursor().execute("UPDATE tenancy_signinrulesversion SET second_factor = '{}'")
    with pytest.raises(InvalidInput):
        set_sign_in_rules(house.tenant.id, SignInRules(minutes=0), expected=None, by=None, reason="x")
    with pytest.raises(InvalidInput):
        set_sign_in_rules(house.tenant.id, SignInRules(), expected=None, by=None, reason=" ")


def word(request: Request, decision: str) -> dict[str, str]:
    """A word on a request, as its card sends it."""
    return {"decision": decision, "digest": request.packet_digest, "typed": "150", "reason": "because"}


@proves("R-SEC-11", part="a yes that moves money asks for the second factor again, a no does not")
@pytest.mark.parametrize(
    ("asked", "decision", "wanted"),
    [
        ({}, "approve", True),
        ({}, "edit", True),
        ({}, "reject", False),
        ({}, "revise", False),
        ({"risk": "destructive", "has_amount": False}, "approve", True),
        ({"risk": "network", "has_amount": False}, "approve", False),
    ],
)
def test_a_yes_to_a_request_that_moves_money_asks_for_the_factor(
    desk: Desk, asked: dict[str, Any], decision: str, wanted: bool
) -> None:
    set_rules(desk.house.tenant.id, areas=[Area.MONEY])
    approver, request = desk.house.people.approver, desk.ask(**asked)
    client = browser(approver)
    show_factor(client, enrol(approver.person), ago=HOUR)
    answer = client.post(f"/approvals/{request.id}", word(request, decision))
    assert asks(answer) is wanted
    if wanted:
        assert desk.said(request) == []


@pytest.mark.usefixtures("code_counter")
@proves("R-SEC-11", part="a script sends its form plainly where the second factor is asked for")
def test_a_yes_by_script_is_sent_again_plainly_and_counts_with_its_code(desk: Desk) -> None:
    set_rules(desk.house.tenant.id, areas=[Area.MONEY])
    approver, request = desk.house.people.approver, desk.ask()
    client = browser(approver)
    show_factor(client, enrol(approver.person), ago=HOUR)
    where, said = f"/approvals/{request.id}", word(request, "approve")
    answer = client.post(where, said, headers={"hx-request": "true"})
    assert (answer.status_code, answer.headers["Interlock-Send-Plainly"]) == (403, "yes")
    page = client.post(where, said)
    asked = next(form for form in forms_of(page) if "second-factor-code" in form.fields)
    assert {name: asked.fields[name] for name in said} == said
    done = client.post(where, {**asked.fields, "second-factor-code": code_now()})
    assert done.status_code == 302
    assert desk.again(request).outcome == "approve"


@proves("R-SEC-11", part="agreeing to a loosening of money asks for the second factor again")
def test_a_yes_to_a_raised_ceiling_asks_for_the_factor(house: House) -> None:
    second = make_somebody(house.tenant, Role.ADMIN)
    key = program(house.tenant.id, Role.ADMIN, owner=house.people.admin.person)
    higher = {"per_run_usd": "50", "daily_usd": None, "monthly_usd": None, "reason": "A launch"}
    assert key.send("put", "/ceilings", higher).status_code == 202
    set_rules(house.tenant.id, areas=[Area.MONEY])
    theirs = browser(second)
    show_factor(theirs, enrol(second.person), ago=HOUR)
    word = {"proposal": str(proposal(house).id), "reason": "Yes"}
    assert asks(theirs.post(WAITING, word | {"agree": "agree"}))
    with tenant_transaction(house.tenant.id):
        assert newest_ceilings(house.tenant.id, raw_cursor()).per_run_usd != 50
    assert theirs.post(WAITING, word | {"drop": "drop"}).status_code == 302
