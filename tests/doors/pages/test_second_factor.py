"""A second factor that a role needs, and that is asked for again before some changes (R-SEC-11)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from django.urls import resolve

from tenancy.actions import add_member
from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, AuditEntry, FailedSignIn
from tests.conftest import House
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import Form, forms_of
from tests.doors.pages.people import text
from tests.doors.pages.test_every_page import address, nothing
from tests.doors.pages.test_every_write import WRITES
from tests.factories.second_factor import code_now, enrol, set_rules, show_factor
from tests.proves import proves

MONEY, KEYS, INVITATIONS = Area.MONEY, Area.KEYS, Area.INVITATIONS
HOUR = timedelta(hours=1)
PASSWORD = "a long enough password"
Typed = dict[str, str]
# Every address that takes a form, with forms that it takes and the areas of change to which each belongs. A
# new one has to be put here. What approvals and what waits belong to is up to what they are about.
AREAS: dict[str, list[tuple[Typed, set[Area]]]] = {
    "approvals/<uuid:request_id>": [({"decision": "approve"}, set())],
    "approvals/<uuid:request_id>/preview": [({}, set())],
    # What moves money is decided by itself.
    "approvals/bulk": [({"decision": "approve"}, set())],
    "boundaries/<str:slug>": [({"tool": "x"}, set())],
    "boundaries/<str:slug>/<int:number>/retire": [({}, {MONEY})],
    "boundaries/_publish": [({"publish": "publish"}, {MONEY}), ({"preview": "preview"}, set())],
    "budgets/ceilings": [({}, {MONEY})],
    "budgets/prices": [({}, {MONEY})],
    # How many runs begin, not what they spend.
    "budgets/rates": [({}, set())],
    "corpora": [({}, set())],
    "corpora/<str:corpus>/<str:document>": [({}, set())],
    "http-tools": [({}, set())],
    "models": [({}, {MONEY})],
    "new/<slug:workflow>": [({}, set())],
    "destinations": [({"act": "web"}, set()), ({"act": "databases"}, set()), ({"act": "mail"}, set())],
    "policy": [({}, set())],
    "policy/rule": [({}, set())],
    "policy/undo": [({}, set())],
    "preferences": [({}, set())],
    "reviews/<uuid:review_id>": [({}, set())],
    "runs/<uuid:run_id>/actions": [({"wish": "cancel"}, set())],
    # What a person says happened sends nothing; what a retry sends is asked for again.
    "runs/<uuid:run_id>/effects": [({"act": "reconcile"}, set())],
    "runs/<uuid:run_id>/replayed": [({}, set())],
    "runs/<uuid:run_id>/retry": [({}, set())],
    "runs/bulk": [({"wish": "cancel"}, set())],
    "runs/views": [({}, set())],
    "runs/views/<uuid:view_id>": [({}, set())],
    "system/circuits/<uuid:circuit_id>": [({}, set())],
    "system/stops/<uuid:stop_id>/lift": [({}, set())],
    "system/reviewed/<uuid:run_id>": [({}, set())],
    "system/stop": [({}, set())],
    "tenant/keys": [({}, {KEYS})],
    "tenant/keys/<uuid:key_id>/revoke": [({}, {KEYS})],
    "tenant/keys/<uuid:key_id>/rotate": [({}, {KEYS})],
    "tenant/members/<uuid:member_id>/limits": [({}, {INVITATIONS})],
    "tenant/members/<uuid:member_id>/remove": [({}, {INVITATIONS})],
    "tenant/people/<uuid:person_id>/confirm": [({}, {INVITATIONS})],
    "tenant/people/<uuid:person_id>/deactivate": [({}, {INVITATIONS})],
    "tenant/people/<uuid:person_id>/lift": [({}, set())],
    "tenant/people/<uuid:person_id>/link": [({}, {INVITATIONS})],
    "tenant/people/invite": [({}, {INVITATIONS})],
    "tenant/queues": [({}, set())],
    "tenant/queues/<uuid:queue_id>": [({"wish": "close"}, set())],
    "tenant/sign-in-rules": [({}, {MONEY, KEYS, INVITATIONS})],
    "tenant/sign-ins/<uuid:session_id>/end": [({}, set())],
    "tenant/switch": [({}, set())],
    "tenant/webhooks": [({"name": "x"}, {KEYS}), ({"act": "keep"}, set())],
    "tenant/webhooks/<uuid:webhook_id>": [
        ({"act": "rotate"}, {KEYS}), ({"act": "remove"}, {KEYS}), ({"act": "on"}, set()),
        ({"act": "test"}, set()), ({"act": "replay"}, set()),
    ],
    "change-requests": [({"agree": "agree"}, set()), ({"drop": "drop"}, set())],
    "mcp-servers": [
        ({"value": "x"}, {KEYS}), ({"revoke": "x"}, {KEYS}), ({"places": ""}, set()), ({"slug": "x"}, set()),
    ],
    "mcp-servers/<str:server>": [({"act": "admit"}, set()), ({"act": "look"}, set())],
    "tools/<str:name>": [({}, {MONEY}), ({"preview": "x"}, set()), ({"enabled": "off"}, set())],
    "workflows/<str:slug>/<int:number>/retire": [({}, set())],
    "workflows/_publish": [({}, set())],
}  # fmt: skip


@pytest.fixture(autouse=True)
def forgotten(house: House, code_counter: int) -> Iterator[None]:
    """Forget failed attempts: they are counted by address, and all tests come from one."""
    FailedSignIn.objects.all().delete()
    yield
    FailedSignIn.objects.all().delete()


@pytest.fixture
def admin(house: House) -> Client:
    """An administrator's browser, whose person has a factor that they showed an hour ago."""
    client = browser(house.people.admin)
    show_factor(client, enrol(house.people.admin.person), ago=HOUR)
    return client


def asks(answer: Any) -> bool:
    """Whether a page asks to show the factor."""
    return answer.status_code == 403 and "Show your second factor" in text(answer)


def proof(answer: Any) -> Form:
    """The form by which a page asks for the factor, with what was typed before."""
    return next(form for form in forms_of(answer) if "second-factor-code" in form.fields)


def key_labels(house: House) -> set[str]:
    """The names of the tenant's keys."""
    with tenant_transaction(house.tenant.id):
        return set(ApiKey.objects.values_list("principal__label", flat=True))


def test_every_form_of_the_console_is_said_to_belong_to_areas_or_to_none() -> None:
    assert set(AREAS) == {route.partition("?")[0] for route in WRITES}
    for route, forms in AREAS.items():
        view: Any = resolve(address(route, nothing())).func
        # Whatever asks by what a form says is tried with such forms; all else asks always or never.
        said = getattr(view, "asks", ())
        if not callable(said):
            assert all(areas == set(said) for _, areas in forms), route


@proves("R-SEC-11", part="a second factor is asked for again before money, keys and invitations")
@pytest.mark.parametrize("area", list(Area))
def test_each_form_asks_for_the_factor_where_the_tenant_says_so_and_nowhere_else(
    house: House, admin: Client, area: Area
) -> None:
    set_rules(house.tenant.id, areas=[area])
    with tenant_transaction(house.tenant.id):
        before = AuditEntry.objects.count()
    for route, forms in AREAS.items():
        for typed, areas in forms:
            answer = admin.post(address(route, nothing()), {"reason": "because", **typed})
            assert asks(answer) is (area in areas), (route, typed, answer.status_code)
            assert not asks(admin.get(address(route, nothing()))), route
    with tenant_transaction(house.tenant.id):
        # What belongs elsewhere was asked of things that nobody has.
        assert AuditEntry.objects.count() == before


@proves("R-SEC-11", part="what was typed is kept while the factor is asked for")
def test_a_right_code_does_what_was_typed_and_a_wrong_one_keeps_it(house: House, admin: Client) -> None:
    set_rules(house.tenant.id, areas=[KEYS])
    typed = {"label": "the one <b>", "role": "client", "days": "7", "owner": "fresh", "workflows": "a-*"}
    asked = proof(admin.post("/tenant/keys", typed))
    assert asked.action == "/tenant/keys"
    wrong = admin.post(asked.action, {**asked.fields, "second-factor-code": "000000"})
    assert wrong.status_code == 403
    assert "The code is not right" in text(wrong)
    assert "the one <b>" not in key_labels(house)
    assert FailedSignIn.objects.filter(person=house.people.admin.person, step="code").count() == 1
    again = proof(wrong)
    assert {name: again.fields[name] for name in typed} == typed
    done = admin.post(again.action, {**again.fields, "second-factor-code": code_now()})
    assert done.status_code == 200
    assert "It is shown this once" in text(done)
    assert "the one <b>" in key_labels(house)
    # Within the minutes nobody is asked again.
    assert admin.post("/tenant/keys", {**typed, "label": "another"}).status_code == 200


@proves("R-SEC-11", part="a proof counts for the minutes that the tenant says")
def test_a_factor_shown_within_the_minutes_is_not_asked_for_again(house: House) -> None:
    set_rules(house.tenant.id, areas=[KEYS], minutes=5)
    client, factor = browser(house.people.admin), enrol(house.people.admin.person)
    form = {"label": "x", "role": "client", "days": "7", "owner": "fresh"}
    show_factor(client, factor, ago=timedelta(minutes=5, seconds=1))
    assert asks(client.post("/tenant/keys", form))
    show_factor(client, factor, ago=timedelta(minutes=4, seconds=30))
    assert client.post("/tenant/keys", form).status_code == 200


def test_a_code_is_no_part_of_what_the_form_says(house: House, admin: Client) -> None:
    set_rules(house.tenant.id, areas=[INVITATIONS])
    given = {"email": f"new-{fresh_id().hex}@people.example", "name": "N", "role": "auditor"}
    asked = proof(admin.post("/tenant/people/invite", given))
    done = admin.post(asked.action, {**asked.fields, "second-factor-code": code_now()})
    assert done.status_code in (200, 302)
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.filter(verb="member.add", after__role="auditor").exists()


@proves("R-SEC-11", part="the password is no substitute for a second factor")
def test_whoever_has_a_factor_is_not_let_through_by_their_password(house: House, admin: Client) -> None:
    person = house.people.admin.person
    person.set_password(PASSWORD)
    person.save(update_fields=["password"])
    admin.force_login(person)
    set_rules(house.tenant.id, areas=[KEYS])
    answer = admin.post("/account/reauthenticate/?next=/tenant/keys", {"password": PASSWORD})
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/account/2fa/reauthenticate/")
    assert asks(admin.post("/tenant/keys", {"label": "x"}))
    # Nor is another factor set up, nor this one taken away.
    for path in ("webauthn/add/", "totp/deactivate/", "recovery-codes/generate/"):
        answer = admin.post(f"/account/2fa/{path}")
        assert answer.headers["Location"].startswith("/account/2fa/reauthenticate/"), path
    assert Authenticator.objects.filter(user=person).exists()


@proves("R-SEC-11", part="who has no second factor sets one up before such a change")
def test_whoever_has_no_factor_sets_one_up_and_then_goes_on_with_what_they_typed(house: House) -> None:
    client, person = browser(house.people.admin), house.people.admin.person
    set_rules(house.tenant.id, areas=[KEYS])
    typed = {"label": "kept", "role": "client", "days": "7", "owner": "fresh"}
    answer = client.post("/tenant/keys", typed)
    assert answer.status_code == 403
    assert "This needs a second factor, and you have none yet" in text(answer)
    form = next(form for form in forms_of(answer) if form.action == "/tenant/keys")
    assert {name: form.fields[name] for name in typed} == typed
    assert client.post(form.action, form.fields).status_code == 403
    show_factor(client, enrol(person))
    assert client.post(form.action, form.fields).status_code == 200
    assert "kept" in key_labels(house)


@proves("R-SEC-11", part="a second factor is required per role")
def test_whoever_lacks_the_factor_of_their_role_does_nothing_until_they_have_it(house: House) -> None:
    client = browser(house.people.admin)
    assert client.get("/runs").status_code == 200
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    for route in ("/", "/runs", "/tenant/keys", "/palette?q=x", "/budgets/ledger.csv"):
        answer = client.get(route)
        assert answer.status_code == 403, route
        assert "you have none yet" in words(answer), route
    before = key_labels(house)
    typed = {"label": "never", "role": "client", "days": "7", "owner": "fresh"}
    assert client.post("/tenant/keys", typed).status_code == 403
    assert key_labels(house) == before
    fragment = client.get("/runs/changes.html", headers={"hx-request": "true"})
    assert (fragment.status_code, fragment.content) == (403, b"")
    # The way out is open: setting one up, one's own sessions, other tenants, signing out.
    assert client.get("/account/2fa/").status_code == 200
    assert client.get("/account/sessions/").status_code == 200
    show_factor(client, enrol(house.people.admin.person))
    assert client.get("/runs").status_code == 200


@proves("R-SEC-11", part="a second factor is required per role")
def test_a_role_that_needs_none_goes_on_without_one(house: House) -> None:
    set_rules(house.tenant.id, roles=[Role.ADMIN, Role.AUDITOR], areas=list(Area))
    assert browser(house.people.operator).get("/runs").status_code == 200
    assert browser(house.people.auditor).get("/runs").status_code == 403


@proves("R-SEC-11", part="a session that was not opened with the second factor shows it first")
def test_a_session_from_before_the_factor_is_led_to_show_it_and_back(house: House) -> None:
    client, person = browser(house.people.admin), house.people.admin.person
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    enrol(person)
    sent = client.get("/tenant/keys?a=1")
    assert (sent.status_code, sent.headers["Location"]) == (
        302, "/account/reauthenticate/?next=%2Ftenant%2Fkeys%3Fa%3D1",
    )  # fmt: skip
    page = client.get(sent.headers["Location"], follow=True)
    where = page.redirect_chain[-1][0]
    assert where.startswith("/account/2fa/reauthenticate/")
    done = client.post(where, {"code": code_now(), "next": "/tenant/keys?a=1"})
    assert (done.status_code, done.headers["Location"]) == (302, "/tenant/keys?a=1")
    assert client.get("/tenant/keys?a=1").status_code == 200


def test_a_factor_that_was_taken_away_proves_nothing_any_more(house: House) -> None:
    client, person = browser(house.people.admin), house.people.admin.person
    set_rules(house.tenant.id, roles=[Role.ADMIN])
    lost = enrol(person)
    show_factor(client, lost)
    assert client.get("/runs").status_code == 200
    lost.delete()
    enrol(person)
    assert client.get("/runs").status_code == 302


@proves("R-SEC-11", part="a tenant's rules hold in that tenant alone")
def test_in_another_tenant_one_goes_on_as_before(house: House) -> None:
    client = browser(house.people.admin)
    other = house.people.other_tenant
    add_member(other.id, house.people.admin.person, Role.OPERATOR)
    set_rules(house.tenant.id, roles=list(Role))
    client.post("/tenant/switch", {"tenant": str(house.tenant.id)})
    assert client.get("/runs").status_code == 403
    assert client.post("/tenant/switch", {"tenant": str(other.id)}).status_code == 302
    assert client.get("/runs").status_code == 200
