"""Deciding on pages without script: each word and what becomes of it, each refusal and what is then said."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from django.test import Client

from approvals.models import Decision, Request
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import Form, form_with, forms_of
from tests.doubles.company import Company
from tests.factories.approvals import ASKED, Desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.factories.world import World
from tests.proves import proves

QUESTION = {
    "type": "object",
    "properties": {"order": {"type": "string", "minLength": 2}, "copies": {"type": "integer"}},
    "required": ["order"],
}
KEY = "sk-" + "a1B2" * 8


def card(who: Somebody, request: Request) -> tuple[Client, Any]:
    """A browser of somebody and the request's page in it."""
    client = browser(who)
    return client, client.get(f"/approvals/{request.id}")


def decide(who: Somebody, request: Request, word: str, **typed: str) -> Any:
    """Open the page, fill the form that has the button, press it."""
    client, page = card(who, request)
    return form_with(page, word).send(client, word, **typed)


def at_the_gate(world: World, order: str = "A-1001") -> tuple[UUID, Request]:
    """A refund that waits: its run and its request."""
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": order})
    world.drive(run)
    (request,) = world.open_requests(run)
    return run, request


@proves("R-UI-4", part="approve without script")
def test_a_yes_with_the_amount_typed_approves(desk: Desk) -> None:
    request = desk.ask()
    answer = decide(desk.house.people.approver, request, "approve", typed="150")
    assert (answer.status_code, answer["Location"]) == (302, f"/approvals/{request.id}")
    settled = desk.again(request)
    assert (settled.status, settled.outcome) == ("decided", "approve")


@proves("R-APPR-10", part="nothing is approved by a slip")
@pytest.mark.parametrize("typed", ["", "15", "150.01", "abc"])
def test_money_is_not_approved_before_its_amount_is_typed(desk: Desk, typed: str) -> None:
    request = desk.ask()
    answer = decide(desk.house.people.approver, request, "approve", typed=typed)
    assert answer.status_code == 422
    assert "type the amount exactly: 150.00" in words(answer)
    assert desk.said(request) == []


def test_without_money_or_harm_a_click_is_enough(desk: Desk) -> None:
    request = desk.ask(risk="network", has_amount=False)
    assert decide(desk.house.people.approver, request, "approve").status_code == 302
    assert desk.again(request).outcome == "approve"


def test_the_first_button_of_each_form_is_dead_so_that_enter_decides_nothing(desk: Desk) -> None:
    _, page = card(desk.house.people.approver, desk.ask())
    for part in page.content.decode().split("<form")[1:]:
        form = part.split("</form>")[0]
        if 'name="decision"' in form:
            assert form.index('<button class="guard" type="submit" disabled hidden>') < form.index(
                'name="decision"'
            )


@proves("R-UI-4", part="reject without script")
def test_a_no_needs_its_reason_and_keeps_it(desk: Desk) -> None:
    request = desk.ask()
    empty = decide(desk.house.people.approver, request, "reject", reason="  ")
    assert (empty.status_code, desk.said(request)) == (422, [])
    assert (
        decide(desk.house.people.approver, request, "reject", reason="Too much.\r\nReally.").status_code
        == 302
    )
    (said,) = desk.said(request)
    assert (said.kind, said.reason) == ("reject", "Too much.\nReally.")
    page = words(browser(desk.house.people.auditor).get(f"/approvals/{request.id}"))
    assert "the reviewer rejected" in page


@proves("R-UI-4", part="a question's typed form")
def test_the_submitter_answers_by_a_form_with_types(desk: Desk) -> None:
    request = desk.ask(kind="clarification", answer_schema=QUESTION)
    who = desk.house.people.submitter
    wrong = send(who, request, "answer", {"a:/order": "x", "a:/copies": "two"})
    assert wrong.status_code == 422
    assert "A whole number is needed" in words(wrong)
    assert 'value="two"' in wrong.content.decode()
    assert send(who, request, "answer", {"a:/order": "A-1", "a:/copies": "2"}).status_code == 302
    assert body(desk.said(request)[0].answer) == {"order": "A-1", "copies": 2}


def body(stored: Any) -> Any:
    """The JSON of a stored column."""
    return orjson.loads(bytes(stored))


def send(who: Somebody, request: Request, button: str, typed: dict[str, str]) -> Any:
    """As `decide`, for fields whose names are pointers."""
    client, page = card(who, request)
    return form_with(page, button).send(client, button, **typed)


@proves("R-UI-4", part="reconciliation")
@pytest.mark.parametrize("word", ["happened", "not_happened", "cancel"])
def test_what_is_in_doubt_is_reconciled(desk: Desk, word: str) -> None:
    request = desk.ask(kind="reconciliation")
    typed = {"reason": "looked"} if word == "cancel" else {}
    assert decide(desk.house.people.approver, request, word, **typed).status_code == 302
    assert desk.again(request).outcome == word


# -- edits ---------------------------------------------------------------------------------------------------


def edited(who: Somebody, request: Request, typed: dict[str, str]) -> tuple[Client, Any]:
    """The page after somebody asked to see what they change."""
    client, page = card(who, request)
    return client, form_with(page, "review").send(client, "review", **typed)


@proves("R-UI-4", part="edit with its difference")
@proves("R-APPR-3", part="edit on a page")
def test_an_edit_is_shown_as_a_difference_and_keeps_its_types(company_world: World, company: Company) -> None:
    run, request = at_the_gate(company_world)
    client, review = edited(company_world.people.approver, request, {"f:/amount": "10.00"})
    assert "What you change" in words(review)
    assert "129.90" in words(review)
    done = form_with(review, "edit").send(client, "edit", typed="10")
    assert done.status_code == 302
    with tenant_transaction(company_world.id):
        said = Decision.objects.get(request_id=request.id)
    assert body(said.arguments) == {
        "order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "refund",
    }  # fmt: skip
    company_world.approve_all(run)
    assert [Decimal(effect["body"]["amount"]) for effect in company.effects("payments")] == [Decimal(10)]


def test_an_edit_that_nobody_saw_as_it_is_is_shown_first(company_world: World) -> None:
    _, request = at_the_gate(company_world)
    client, review = edited(company_world.people.approver, request, {"f:/amount": "10.00"})
    again = form_with(review, "edit").send(client, "edit", typed="11", **{"f:/amount": "11.00"})
    assert again.status_code == 200
    assert "11.00" in words(again)
    with tenant_transaction(company_world.id):
        assert Decision.objects.count() == 0
    assert form_with(again, "edit").send(client, "edit", typed="11").status_code == 302


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"f:/amount": "ten"}, "does not match"),
        ({"f:/amount": ""}, "does not match"),
        ({"f:/order_id": "x" * 300}, "longer than 200 characters"),
        ({"f:/currency": '"GBP"'}, "Choose one of the values"),
    ],
)
@proves("R-UI-4", part="a fault stands at its field")
def test_what_the_schema_refuses_is_said_at_its_field(
    company_world: World, typed: dict[str, str], said: str
) -> None:
    _, request = at_the_gate(company_world)
    _, answer = edited(company_world.people.approver, request, typed)
    assert answer.status_code == 422
    assert said in words(answer)
    ((name, value),) = typed.items()
    assert 'aria-invalid="true"' in answer.content.decode()
    if name != "f:/currency" and value:
        assert value in answer.content.decode()
    with tenant_transaction(company_world.id):
        assert Decision.objects.count() == 0


def test_an_edit_beyond_the_reader_s_authority_is_refused(company_world: World) -> None:
    _, request = at_the_gate(company_world)
    who = make_somebody(company_world.house.tenant, Role.REVIEWER)
    with tenant_transaction(company_world.id):
        Membership.objects.filter(person=who.person).update(max_amount=Decimal(150))
    client, review = edited(who, request, {"f:/amount": "190.00"})
    answer = form_with(review, "edit").send(client, "edit", typed="190")
    assert answer.status_code == 403
    assert "Your limit is 150" in words(answer)


def test_the_preview_is_a_fragment_that_says_who_must_agree(company_world: World) -> None:
    _, request = at_the_gate(company_world)
    client, page = card(company_world.people.approver, request)
    form = form_with(page, "review")
    where = f"/approvals/{request.id}/preview"
    part = client.post(where, {**form.fields, "f:/amount": "900.00"}, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    assert "2 people must agree to these very arguments" in words(part)
    faulty = client.post(where, {**form.fields, "f:/amount": "x"}, headers={"HX-Request": "true"})
    assert "would not be accepted yet" in words(faulty)


@proves("R-APPR-5", part="two agree to one edit on pages")
def test_a_second_person_agrees_to_the_very_edit(company_world: World) -> None:
    people = company_world.people
    _, request = at_the_gate(company_world, "A-1003")
    client, review = edited(people.approver, request, {"f:/amount": "250.00"})
    form_with(review, "edit").send(client, "edit", typed="250")
    second, page = card(people.second_approver, request)
    assert "agreed to other arguments" in words(page)
    agreed = form_with(page, "edit").send(second, "edit", typed="250.00")
    assert agreed.status_code == 302
    with tenant_transaction(company_world.id):
        found = Request.objects.get(id=request.id)
    assert (found.status, found.outcome) == ("decided", "edit")


def test_a_secret_is_never_on_the_page(desk: Desk) -> None:
    request = desk.ask(arguments={**ASKED, "password": KEY})
    _, page = card(desk.house.people.approver, request)
    assert KEY not in page.content.decode()
    assert "secret " in words(page)


# -- refusals ------------------------------------------------------------------------------------------------


def stale(page: Any, button: str) -> Form:
    """A form of a page that was opened before something happened."""
    return form_with(page, button)


@proves("R-APPR-14", part="the second reviewer is told who and when")
def test_the_second_of_two_is_told_who_decided_and_when(desk: Desk) -> None:
    request = desk.ask()
    client, page = card(desk.house.people.second_approver, request)
    decide(desk.house.people.approver, request, "approve", typed="150")
    late = stale(page, "approve").send(client, "approve", typed="150")
    assert late.status_code == 409
    assert "The request was already decided." in words(late)
    assert "the reviewer approved" in words(late)
    assert "<time datetime=" in late.content.decode()
    assert len(desk.said(request)) == 1


def test_a_person_s_second_word_is_refused(desk: Desk) -> None:
    request = desk.ask(quorum=2)
    client, page = card(desk.house.people.approver, request)
    assert stale(page, "approve").send(client, "approve", typed="150").status_code == 302
    again = stale(page, "approve").send(client, "approve", typed="150")
    assert again.status_code == 409
    assert "You have decided this before." in words(again)
    assert desk.again(request).status == "pending"


@proves("R-APPR-4", part="page")
def test_a_decision_on_another_packet_is_refused_and_the_change_is_marked(
    desk: Desk, superuser: psycopg.Connection[Any]
) -> None:
    request = desk.ask()
    client, page = card(desk.house.people.approver, request)
    packet = orjson.loads(bytes(request.packet))
    packet["arguments"] = packet["arguments"].replace("150.00", "950.00")
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE approvals_request SET packet = %s, packet_digest = %s WHERE id = %s",
            (orjson.dumps(packet), "f" * 64, request.id),
        )
    answer = form_with(page, "approve").send(client, "approve", typed="150")
    assert answer.status_code == 409
    said = words(answer)
    assert "Look again." in said
    assert "What changed since you opened it" in said
    assert "/amount 150.00 950.00" in said
    assert desk.said(request) == []


@proves("R-APPR-4", part="a page names the packet it showed")
@pytest.mark.parametrize("digest", ["", "0" * 64, "nonsense"])
def test_a_form_without_the_right_digest_decides_nothing(desk: Desk, digest: str) -> None:
    request = desk.ask()
    assert (
        decide(desk.house.people.approver, request, "approve", typed="150", digest=digest).status_code == 409
    )
    assert desk.said(request) == []


@proves("R-APPR-5", part="own request on a page")
def test_nobody_decides_on_their_own_request(desk: Desk) -> None:
    admin = desk.house.people.admin
    request = desk.ask(submitter=admin)
    client, page = card(admin, request)
    assert "Nobody decides on their own run." in words(page)
    deciding = [form for form in forms_of(page) if form.action.startswith(f"/approvals/{request.id}")]
    assert {form.action for form in deciding} == {f"/approvals/{request.id}"}
    assert {name for form in deciding for name, _ in form.buttons} == {"do"}
    others = form_with(card(desk.house.people.approver, request)[1], "approve")
    answer = others.send(client, "approve", typed="150")
    assert answer.status_code == 403
    assert "This is not yours to decide." in words(answer)
    assert desk.said(request) == []


@pytest.mark.parametrize("role", ["operator", "auditor", "submitter"])
def test_roles_that_do_not_decide_are_refused(desk: Desk, role: str) -> None:
    request = desk.ask()
    form = form_with(card(desk.house.people.approver, request)[1], "approve")
    answer = form.send(browser(getattr(desk.house.people, role)), "approve", typed="150")
    assert (answer.status_code, desk.said(request)) == (403, [])


def test_an_expired_request_is_410_and_says_so(desk: Desk) -> None:
    # Its form is sent to one whose time is up: how soon the page is there is the machine's.
    client, page = card(desk.house.people.approver, desk.ask())
    late = desk.ask(expires_in=timedelta(seconds=-1))
    answer = form_with(page, "approve")
    answer.action = f"/approvals/{late.id}"
    told = answer.send(client, "approve", typed="150")
    assert told.status_code == 410
    assert "You are too late" in words(told)
    assert desk.again(late).status == "expired"


@pytest.mark.parametrize("word", ["", "nonsense", "answer", "happened"])
def test_a_word_that_does_not_fit_is_422(desk: Desk, word: str) -> None:
    request = desk.ask()
    client, page = card(desk.house.people.approver, request)
    form = form_with(page, "approve")
    answer = client.post(form.action, {**form.fields, "decision": word})
    assert (answer.status_code, desk.said(request)) == (422, [])


def test_only_a_form_of_ours_decides(desk: Desk) -> None:
    request = desk.ask()
    client = Client(enforce_csrf_checks=True, headers={"accept": "text/html"})
    client.force_login(desk.house.people.approver.person)
    answer = client.post(f"/approvals/{request.id}", {"decision": "approve"})
    assert (answer.status_code, desk.said(request)) == (403, [])


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"])
def test_nobody_is_sent_elsewhere(desk: Desk, back: str) -> None:
    request = desk.ask()
    answer = decide(desk.house.people.approver, request, "reject", reason="no", back=back)
    assert answer["Location"] == f"/approvals/{request.id}"


@proves("R-UI-4", part="on to the next")
def test_after_a_decision_the_next_stands_open_and_the_decided_one_is_struck(desk: Desk) -> None:
    first, second = (desk.ask(expires_in=timedelta(minutes=n)) for n in (5, 9))
    client = browser(desk.house.people.approver)
    form = form_with(client.get("/approvals"), "approve")
    assert form.fields["next"] == str(second.id)
    landed = client.get(form.send(client, "approve", typed="150")["Location"]).content.decode()
    assert f'id="card-{second.id}"' in landed
    assert f'class="request-words settled" id="request-{first.id}"' in landed
    assert landed.index(f'id="item-{first.id}"') < landed.index(f'id="item-{second.id}"')
    assert f'id="item-{first.id}"' not in client.get("/approvals").content.decode()


@proves("R-APPR-5", part="an edit that needs more people says so on the page")
def test_edit_that_moves_more_says_before_and_after_how_many_must_agree(
    company_world: World, company: Company
) -> None:
    people, (run, request) = company_world.people, at_the_gate(company_world)
    client, looked = edited(people.approver, request, {"f:/amount": "250.00"})
    assert "2 people must agree to these very arguments. After your word 1 more must." in words(looked)
    sent = form_with(looked, "edit").send(client, "edit", typed="250")
    told = words(client.get(sent["Location"]))
    assert "One more person must agree before it is done." in told
    assert "Your changes: 2 people must agree to these very arguments; 1 agreed, 1 more must." in told
    other, page = card(people.second_approver, request)
    assert "2 people must agree to these very arguments; 1 agreed, 1 more must." in words(page)
    form = next(one for one in forms_of(page) if one.fields.get("agree"))
    assert form.send(other, "edit", typed="250").status_code == 302
    with tenant_transaction(company_world.id):
        settled = Request.objects.get(id=request.id)
    assert (settled.status, settled.outcome) == ("decided", "edit")
    company_world.drive(run)
    assert [one["method"] for one in company.requests("payments")].count("POST") == 1
