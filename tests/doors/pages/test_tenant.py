"""People, keys, the audit log and the system's page (R-UI-9, R-SEC-2, R-SEC-6, R-SEC-9)."""

import re
from typing import Any

import pytest
from django.test import Client

from orchestrator.core.tools.tool_update import asked_change
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.actions import add_person, create_key, write_audit_entry
from tenancy.actions.people import LastAdmin, remove_role
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, AuditEntry, Membership, Person
from tenancy.people.member_queries import list_people
from tests.doors.api.program import Program
from tests.doors.pages.browsers import words
from tests.doors.pages.forms import form_with, forms_of
from tests.doors.pages.people import HOSTILE, at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves


def invited(admin: Client, world: World, **typed: str) -> Any:
    given = {"email": f"new-{world.id.hex}@people.example", "name": "Newcomer", "role": "reviewer", **typed}
    return admin.post("/tenant/people/invite", given)


def member(world: World, role: Role = Role.REVIEWER, name: str = "") -> Membership:
    """A membership of a role."""
    with tenant_transaction(world.id):
        found = Membership.objects.select_related("person").filter(role=role.value)
        return found.filter(person__name=name).get() if name else found.order_by("id")[0]


def verbs(world: World) -> list[str]:
    """What was audited, oldest first."""
    with tenant_transaction(world.id):
        return list(AuditEntry.objects.order_by("at", "id").values_list("verb", flat=True))


@proves("R-UI-9", part="inviting")
@proves("R-SEC-6", part="members")
def test_somebody_new_gets_a_link_once_and_signs_in_with_it(admin: Client, world: World) -> None:
    answer = invited(admin, world, queues="finance, operations", max_amount="100", max_risk="network")
    (address,) = re.findall(r"<code>(http[^<]+)</code>", text(answer))
    assert address not in text(admin.get("/tenant/people"))
    row = member(world, name="Newcomer")
    assert (row.queues, str(row.max_amount), row.max_risk) == (["finance", "operations"], "100.00", "network")
    assert verbs(world)[-2:] == ["member.add", "person.link"]
    guest = Client(headers={"accept": "text/html"})
    page = guest.get(address, follow=True)
    secret = "correct horse battery staple"
    done = guest.post(page.redirect_chain[-1][0], {"password1": secret, "password2": secret}, follow=True)
    assert done.status_code == 200
    assert Person.objects.get(name="Newcomer", email__contains=world.id.hex).check_password(secret)
    used = Client(headers={"accept": "text/html"}).get(address, follow=True)
    assert 'name="password1"' not in text(used)


@proves("R-SEC-1", part="no link to somebody else's account")
def test_nobody_gets_a_link_to_an_account_that_is_known_elsewhere(admin: Client, world: World) -> None:
    other = make_somebody(world.people.other_tenant, Role.ADMIN)
    answer = invited(admin, world, email=other.person.email)
    assert answer.status_code == 302
    assert admin.post(f"/tenant/people/{other.person.id}/link").status_code == 404
    settled = add_person(f"set-{world.id.hex}@people.example", "Settled", "a long enough password")
    assert invited(admin, world, email=settled.email).status_code == 302
    assert admin.post(f"/tenant/people/{settled.id}/link").status_code == 404


def test_a_link_that_was_lost_is_made_again(admin: Client, world: World) -> None:
    invited(admin, world)
    person = member(world, name="Newcomer").person
    answer = admin.post(f"/tenant/people/{person.id}/link")
    assert "/account/password/reset/key/" in text(answer)


@pytest.mark.parametrize(
    "typed",
    [
        {"email": "nobody"},
        {"email": "\u212aate@people.example"},
        {"name": ""},
        {"role": "king"},
        {"max_amount": "-1"},
        {"queues": "q" * 65},
        {"queues": "finance, *"},
        {"queues": "fin*"},
        {"max_risk": "x"},
    ],
)
def test_a_wrong_invitation_names_its_field_and_adds_nobody(
    admin: Client, world: World, typed: dict[str, str]
) -> None:
    before = verbs(world)
    answer = invited(admin, world, **typed)
    assert answer.status_code == 422
    assert "Nothing was changed yet." in text(answer)
    assert verbs(world) == before


def test_a_role_is_given_once(admin: Client, world: World) -> None:
    invited(admin, world)
    again = invited(admin, world)
    assert again.status_code == 422
    assert "has the role reviewer already" in text(again)


@proves("R-APPR-23", part="queues on the page")
def test_an_invitation_without_a_queue_decides_in_none_and_says_so(admin: Client, world: World) -> None:
    page = words(admin.get("/tenant/people"))
    assert "every queue" in page
    assert "no queue" not in page
    assert 'value="*"' in text(admin.get("/tenant/people"))
    invited(admin, world, queues="")
    assert member(world, name="Newcomer").queues == []
    assert "no queue" in words(admin.get("/tenant/people"))


@proves("R-UI-9", part="limits")
def test_limits_are_changed_and_audited_with_both_sides(admin: Client, world: World) -> None:
    row = member(world)
    path = f"/tenant/members/{row.id}/limits"
    assert (
        admin.post(path, {"queues": "finance", "max_amount": "50", "reason": "New here"}).status_code == 302
    )
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="member.change")
    assert entry.before == {"queues": ["*"], "max_amount": None, "max_risk": ""}
    assert entry.after == {"queues": ["finance"], "max_amount": "50", "max_risk": ""}
    assert admin.post(path, {"max_amount": "much"}).status_code == 422


@proves("R-UI-9", part="the last administrator stays")
def test_the_last_administrator_cannot_be_removed(admin: Client, world: World) -> None:
    only = member(world, Role.ADMIN)
    answer = admin.post(f"/tenant/members/{only.id}/remove")
    assert answer.status_code == 409
    with pytest.raises(LastAdmin):
        remove_role(world.id, only.id, by=None, reason="")
    second = make_somebody(world.house.tenant, Role.ADMIN)
    assert admin.post(f"/tenant/members/{only.id}/remove", {"reason": "moves on"}).status_code == 302
    assert admin.get("/tenant/people").status_code == 403
    assert at(second).get("/tenant/people").status_code == 200


def test_a_role_that_is_taken_away_is_gone_at_once(admin: Client, world: World) -> None:
    reviewer = world.people.approver
    row = _membership(world, reviewer.person)
    assert admin.post(f"/tenant/members/{row.id}/remove", {"reason": "left"}).status_code == 302
    assert at(reviewer).get("/tools").status_code == 403
    assert verbs(world)[-1] == "member.remove"


def _membership(world: World, person: Person) -> Membership:
    with tenant_transaction(world.id):
        return Membership.objects.get(person=person)


@proves("R-SEC-2", part="a key on the page: shown once, expiring, revocable, last use")
def test_a_key_is_made_used_and_revoked(admin: Client, world: World) -> None:
    made = admin.post("/tenant/keys", {"label": "nightly", "role": "auditor", "days": "7", "owner": "fresh"})
    (clear,) = set(re.findall(r"ilk_[0-9a-z_]+", text(made)))
    assert clear not in text(admin.get("/tenant/keys"))
    who = Program(clear=clear)
    assert who.get("/runs").status_code == 200
    with tenant_transaction(world.id):
        key = ApiKey.objects.get(label="nightly")
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days in {6, 7}
    assert key.last_used_at is not None
    assert admin.post(f"/tenant/keys/{key.id}/revoke").status_code == 302
    assert who.get("/runs").status_code == 401
    assert "Revoked" in words(admin.get("/tenant/keys"))
    assert verbs(world)[-2:] == ["key.create", "key.revoke"]


@pytest.mark.parametrize(
    "typed",
    [
        {"label": ""},
        {"role": "king"},
        {"days": ""},
        {"days": "9999"},
        {"owner": "you"},
        {"role": "reviewer"},
        {"role": "admin"},
    ],
)
def test_a_key_without_name_role_or_end_is_not_made(
    admin: Client, world: World, typed: dict[str, str]
) -> None:
    with tenant_transaction(world.id):
        before = ApiKey.objects.count()
    given = {"label": "x", "role": "client", "days": "7", "owner": "fresh", **typed}
    assert admin.post("/tenant/keys", given).status_code == 422
    with tenant_transaction(world.id):
        assert ApiKey.objects.count() == before


@proves("R-SEC-11", part="limits on the page")
def test_a_key_is_made_with_limits_and_the_list_shows_them(admin: Client, world: World) -> None:
    given = {
        "label": "narrow", "role": "operator", "days": "7", "owner": "fresh", "runs": "own",
        "workflows": "support-*, tool-loop", "addresses": "10.0.0.0/8",
    }  # fmt: skip
    assert admin.post("/tenant/keys", given).status_code == 200
    assert "its own runs of support-*, tool-loop, from 10.0.0.0/8" in words(admin.get("/tenant/keys"))


@pytest.mark.parametrize(
    "typed",
    [
        {"workflows": "Not One"},
        {"addresses": "everywhere"},
        {"role": "admin", "owner": "me", "runs": "own"},
    ],
)
def test_limits_that_are_none_are_named_at_their_field(
    admin: Client, world: World, typed: dict[str, str]
) -> None:
    given = {"label": "narrow", "role": "client", "days": "7", "owner": "fresh", **typed}
    answer = admin.post("/tenant/keys", given)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in text(answer)
    with tenant_transaction(world.id):
        assert not ApiKey.objects.filter(label="narrow").exists()


@proves("R-SEC-11", part="rotate on the page")
def test_a_key_is_rotated_and_the_secret_before_ends(admin: Client, world: World) -> None:
    old = create_key(world.id, Role.CLIENT)
    answer = admin.post(f"/tenant/keys/{old.key.id}/rotate", {"overlap": "0"})
    (clear,) = set(re.findall(r"ilk_[0-9a-z_]+", text(answer)))
    assert Program(clear=clear).get("/runs").status_code == 200
    assert Program(clear=old.clear).get("/runs").status_code == 401
    assert verbs(world)[-2:] == ["key.rotate", "key.revoke"]


@proves("R-SEC-11", part="a client does not inspect the tenant")
def test_a_client_sees_neither_people_keys_audit_log_nor_private_places(world: World) -> None:
    client, auditor = (at(make_somebody(world.house.tenant, role)) for role in (Role.CLIENT, Role.AUDITOR))
    for path in ("/tenant/people", "/tenant/keys", "/tenant/audit", "/tool-proposals"):
        assert client.get(path).status_code == 403, path
        assert auditor.get(path).status_code == 200, path
        assert path not in text(client.get("/"))
    assert "Private places" not in text(client.get("/tool-servers"))
    assert "Private places" in text(auditor.get("/tool-servers"))
    assert client.get("/new/tool-loop").status_code == 200


def test_a_key_that_a_person_answers_for_reaches_no_further_than_they_do(admin: Client, world: World) -> None:
    admin.post("/tenant/keys", {"label": "mine", "role": "admin", "days": "7", "owner": "me"})
    with tenant_transaction(world.id):
        key = ApiKey.objects.select_related("principal").get(label="mine")
    assert key.principal.owner_id == world.people.admin.person.id


@proves("R-SEC-6", part="the audit log on its page")
@proves("R-UI-9", part="audit log")
def test_the_audit_log_is_filtered_paged_and_shows_both_sides(admin: Client, world: World) -> None:
    with tenant_transaction(world.id):
        for number in range(60):
            write_audit_entry(
                world.id, world.people.admin.id, verb="test.change", object=f"thing:{number}",
                before={"n": number}, after={"n": number + 1}, reason=f"because {number}",
            )  # fmt: skip
    first = admin.get("/tenant/audit?verb=test.change")
    assert text(first).count('<details class="row-details"') == 50
    (following,) = re.findall(r'href="(/tenant/audit\?[^"]*cursor=[^"]*)"', text(first))
    second = admin.get(following.replace("&amp;", "&"))
    assert text(second).count('<details class="row-details"') == 10
    assert "because 59" in words(first)
    assert "because 0" in words(second)
    assert "/n 59 60" in words(first)
    by_object = words(admin.get("/tenant/audit?object=thing:42"))
    assert "because 42" in by_object
    assert "because 41" not in by_object
    assert "No change matches" in words(admin.get(f"/tenant/audit?by={world.people.auditor.id}"))


@proves("R-UI-9", part="audit log, names for ids")
def test_the_audit_log_names_people_and_keys_that_it_knows(admin: Client, world: World) -> None:
    house = world.house.tenant
    admin.post("/tenant/keys", {"label": "Nightly", "role": "auditor", "days": "7", "owner": "fresh"})
    with tenant_transaction(house.id):
        named = list_people()[0].person
        key = ApiKey.objects.get(label="Nightly")
        told = (f"person:{named.id}", f"tenant:{house.id}", f"key:{key.id}", "tool:a.b", "person:none")
        for one in told:
            write_audit_entry(house.id, None, verb="test.name", object=one, before={}, after={})
    shown = words(admin.get("/tenant/audit?verb=test.name"))
    for line in (f"person: {named.name}", f"tenant: {house.name}", "key: Nightly", "tool:a.b"):
        assert line in shown
    # The id stays for those who search by it.
    assert f"person:{named.id}" in shown


@pytest.mark.parametrize("query", ["cursor=x", "by=x", "verb=%22", "object=%25", "cursor=W10"])
def test_nonsense_in_the_audit_address_is_harmless(admin: Client, query: str) -> None:
    assert admin.get(f"/tenant/audit?{query}").status_code == 200


@proves("R-SEC-5", part="tenant pages: outside text")
def test_hostile_names_and_reasons_never_act(admin: Client, world: World) -> None:
    invited(admin, world, name=HOSTILE.strip()[:200])
    admin.post(
        "/tenant/keys", {"label": HOSTILE.strip()[:200], "role": "client", "days": "7", "owner": "fresh"}
    )
    with tenant_transaction(world.id):
        write_audit_entry(
            world.id, None, verb="x", object=HOSTILE, before={HOSTILE: HOSTILE}, after={}, reason=HOSTILE
        )
    for path in ("/tenant/people", "/tenant/keys", "/tenant/audit", "/system"):
        page = text(admin.get(path))
        assert "<script>alert" not in page, path
        assert "\u202e" not in page, path
        assert "\x1b" not in page, path


def stops_now(world: World) -> list[EmergencyStop]:
    """The tenant's own stops in force."""
    with tenant_transaction(world.id):
        return list(EmergencyStop.objects.filter(tenant_id=world.id, lifted_at=None))


@proves("R-SEC-9", part="stops on the page")
def test_an_operator_stops_a_tool_and_lifts_it_again(world: World) -> None:
    operator = at(world.people.operator)
    given = {"what": "tool:calculator.evaluate", "reason": "It lies"}
    assert operator.post("/system/stop", {**given, "sure": given["what"]}).status_code == 302
    assert "It lies" in words(operator.get("/system"))
    (stop,) = stops_now(world)
    assert operator.post(f"/system/lift/{stop.id}").status_code == 302
    assert stops_now(world) == [stop]
    operator.post(f"/system/lift/{stop.id}", {"reason": "It does not"})
    assert stops_now(world) == []
    assert verbs(world)[-2:] == ["stop.set", "stop.lift"]


@pytest.mark.parametrize("typed", [{"what": "global:"}, {"what": "tool:none"}, {"what": ""}, {"reason": ""}])
def test_only_what_is_the_tenants_own_can_be_stopped(world: World, typed: dict[str, str]) -> None:
    answer = at(world.people.operator).post("/system/stop", {"what": "tenant:", "reason": "x", **typed})
    assert answer.status_code == 422
    assert stops_now(world) == []


@proves("R-SEC-9", part="no target by default, how many runs it ends, and the question once more")
def test_a_stop_names_its_target_says_how_many_runs_it_ends_and_asks_once_more(world: World) -> None:
    operator = at(world.people.operator)
    for _ in range(2):
        world.submit("tool-loop", "How much is 2 + 2?")
    world.submit("research-brief", "What do the documents say?")
    (form,) = (one for one in forms_of(operator.get("/system")) if one.action == "/system/stop")
    assert form.fields["what"] == ""
    for what, words_of_it in (
        ("tenant:", "3 runs are under way there"),
        ("workflow:tool-loop", "2 runs are under way there"),
        ("workflow:research-brief", "1 run is under way there"),
        ("workflow:support-refund", "No run is under way there now"),
        ("tool:clock.now", "It ends no run by itself"),
    ):
        asked = operator.post("/system/stop", {"what": what, "reason": "Enough"})
        assert (asked.status_code, words_of_it in words(asked)) == (200, True), what
    with tenant_transaction(world.id):
        assert not EmergencyStop.objects.filter(tenant_id=world.id).exists()
    # What was asked about is what is stopped: another target is asked about anew.
    other = operator.post("/system/stop", {"what": "tenant:", "sure": "tool:clock.now", "reason": "Enough"})
    assert other.status_code == 200
    with tenant_transaction(world.id):
        assert not EmergencyStop.objects.filter(tenant_id=world.id).exists()
    asked = operator.post("/system/stop", {"what": "workflow:tool-loop", "reason": "Enough"})
    assert form_with(asked, "sure").send(operator, "sure").status_code == 302
    with tenant_transaction(world.id):
        stop = EmergencyStop.objects.get(tenant_id=world.id)
    assert (stop.scope, stop.target, stop.reason) == ("workflow", "tool-loop", "Enough")


@proves("R-TOOL-4", part="what an administrator tightened, an operator does not loosen")
def test_what_an_administrator_set_on_a_tool_is_not_lifted_as_a_stop(world: World) -> None:
    for given in ({"enabled": False}, {"risk": "local_write"}):
        change_tool(
            world.id, "calculator.evaluate", asked_change(given), by=world.people.admin.id, reason="x"
        )
    operator = at(world.people.operator)
    stops = stops_now(world)
    assert {stop.scope for stop in stops} == {"tool", "risk"}
    assert "Lift it" not in words(operator.get("/system"))
    for stop in stops:
        assert operator.post(f"/system/lift/{stop.id}", {"reason": "x"}).status_code == 404
    given_back = {"what": "tool:clock.now", "sure": "tool:clock.now", "reason": "Disabled: no"}
    assert operator.post("/system/stop", given_back).status_code == 302
    (own,) = (stop for stop in stops_now(world) if stop.target == "clock.now")
    assert operator.post(f"/system/lift/{own.id}", {"reason": "x"}).status_code == 302
    assert own not in stops_now(world)
