"""The inbox in a browser: from the keyboard, two at once, without script, in both themes and narrow."""

from collections.abc import Iterator
from typing import Any

import orjson
import psycopg
import pytest
from playwright.sync_api import Page, expect

from approvals.actions import Word, decide
from approvals.core.lifecycle import DecisionKind
from approvals.models import Decision, Request
from tenancy.context import tenant
from tenancy.demo import PASSWORD
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, Visitors, axe, no_sideways, photograph
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.approvals import ASKED, Desk, open_desk
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

ANSWER = {"type": "object", "properties": {"order": {"enum": ["last", "first"]}}, "required": ["order"]}
ARMED_MS = 800


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        yield opened


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


def at_the_gate(world: World, order: str = "A-1001") -> Request:
    """A refund that waits: destructive, and money."""
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": order})
    world.drive(run)
    (request,) = world.open_requests(run)
    return request


def at_the_mail(world: World) -> Request:
    """A message that waits after its refund: neither destructive nor money."""
    refund = at_the_gate(world)
    world.decide(refund, world.people.admin)
    world.drive(refund.run_id)
    (request,) = world.open_requests(refund.run_id)
    return request


def outcome(house: House, request: Request) -> tuple[str, str]:
    """Where the request stands."""
    with tenant(house.tenant.id):
        found = Request.objects.get(id=request.id)
    return found.status, found.outcome


def opened(page: Page, where: str = "/approvals") -> Page:
    """The page, its buttons armed."""
    page.goto(where)
    page.wait_for_timeout(ARMED_MS)
    return page


@proves("R-UI-4", part="decide from the keyboard")
def test_a_reviewer_decides_and_goes_on_without_a_pointer(page_as: PageAs, world: World) -> None:
    first, second = at_the_gate(world), at_the_gate(world, "A-1002")
    page = opened(page_as("reviewer"))
    page.keyboard.press("a")
    expect(page.locator(f"#card-{first.id} .approve [data-typed]")).to_be_focused()
    page.keyboard.type("129.90")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    assert outcome(world.house, first) == ("pending", "")
    page.keyboard.press("Control+Enter")
    expect(page.locator(f"#card-{second.id}")).to_be_visible()
    expect(page.locator(f"#item-{second.id} a")).to_be_focused()
    expect(page.locator(f"#request-{first.id}.settled")).to_be_visible()
    assert outcome(world.house, first) == ("decided", "approve")
    page.wait_for_timeout(ARMED_MS)
    page.keyboard.press("3")
    expect(page.locator(f"#reason-{second.id}")).to_be_focused()
    page.keyboard.type("Not this one.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(f"#request-{second.id}.settled")).to_be_visible()
    assert outcome(world.house, second) == ("decided", "reject")


@proves("R-UI-4", part="edit with a live difference")
def test_an_argument_is_edited_from_the_keyboard_with_its_difference_beside(
    page_as: PageAs, world: World
) -> None:
    request = at_the_gate(world)
    page = opened(page_as("reviewer"))
    page.keyboard.press("e")
    amount = page.locator('[name="f:/amount"]')
    expect(amount).to_be_focused()
    amount.fill("not money")
    expect(page.get_by_text("This would not be accepted yet.")).to_be_visible()
    amount.fill("12.50")
    preview = page.locator(f"#preview-{request.id}")
    expect(preview.locator("ins")).to_have_text("12.50")
    preview.locator("[data-typed]").fill("12.50")
    page.wait_for_timeout(ARMED_MS)
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/approvals?*done=*")
    assert outcome(world.house, request) == ("decided", "edit")


@proves("R-APPR-10", part="a slip of the finger")
def test_a_button_rests_right_after_the_card_changed(page_as: PageAs, world: World) -> None:
    request = at_the_mail(world)
    page = page_as("reviewer")
    page.goto("/approvals")
    expect(page.locator("[data-disarmed]").first).to_be_visible()
    expect(page.locator("[value=approve]")).not_to_be_focused()
    page.keyboard.press("a")
    assert outcome(world.house, request) == ("pending", "")
    page.wait_for_timeout(ARMED_MS)
    page.keyboard.press("a")
    page.wait_for_url("**/approvals?*done=*")
    assert outcome(world.house, request) == ("decided", "approve")


@proves("R-APPR-14", part="two reviewers in two browsers")
def test_of_two_reviewers_one_wins_and_the_other_is_told(
    page_as: PageAs, world: World, no_messages: Messages
) -> None:
    request = at_the_mail(world)
    other = opened(page_as("second-reviewer"))
    slow = opened(page_as("second-reviewer", script=False), f"/approvals/{request.id}")
    winner = opened(page_as("reviewer"))
    winner.keyboard.press("a")
    winner.wait_for_url("**/approvals?*done=*")
    expect(other.locator(f"#request-{request.id}.settled")).to_be_visible()
    expect(other.locator(f"#card-state-{request.id}")).to_contain_text("the reviewer said yes")
    expect(other.locator("[value=approve]")).to_be_disabled()
    no_messages.expect("409")
    slow.locator("[value=approve]").click()
    expect(slow.locator("#notice")).to_contain_text("already decided")
    expect(slow.locator(f"#card-state-{request.id}")).to_contain_text("the reviewer said yes")
    with tenant(world.id):
        assert Decision.objects.filter(request_id=request.id).count() == 1


@proves("R-APPR-4", part="arguments changed after they were shown")
def test_what_changed_after_it_was_shown_is_refused_and_marked(
    page_as: PageAs, desk: Desk, superuser: psycopg.Connection[Any], no_messages: Messages
) -> None:
    request = desk.ask()
    page = opened(page_as("reviewer"))
    packet = orjson.loads(bytes(request.packet))
    packet["arguments"] = packet["arguments"].replace("150.00", "950.00")
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE approvals_request SET packet = %s, packet_digest = %s WHERE id = %s",
            (orjson.dumps(packet), "f" * 64, request.id),
        )
    no_messages.expect("409")
    page.locator(".approve [data-typed]").fill("150")
    page.locator("[value=approve]").click()
    expect(page.locator(".changed ins")).to_have_text("950.00")
    assert desk.said(request) == []


@proves("R-UI-11", part="without script")
def test_without_script_a_reviewer_signs_in_reads_and_decides(page_as: PageAs, world: World) -> None:
    person = world.people.approver.person
    person.set_password(PASSWORD)
    person.save()
    request = at_the_gate(world)
    page = page_as(None, script=False)
    page.goto("/approvals")
    page.locator("[name=login]").fill(person.email)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("main form button[type=submit], main form button:not([type])").first.click()
    expect(page.locator(f"#effect-{request.id}")).to_contain_text("Refund 129.90 USD for order A-1001.")
    expect(page.locator(".arguments")).to_contain_text("/amount")
    page.locator(".approve [data-typed]").fill("129.90")
    page.locator("[value=approve]").click()
    expect(page.locator("#messages")).to_contain_text("Approved.")
    assert outcome(world.house, request) == ("decided", "approve")


@proves("R-UI-4", part="the list follows")
def test_a_new_request_comes_without_moving_what_is_there(page_as: PageAs, desk: Desk) -> None:
    desk.ask()
    page = opened(page_as("reviewer"))
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    new = desk.ask(risk="network")
    page.get_by_role("button", name="1 new request").click()
    expect(page.locator(f"#arrivals #item-{new.id}")).to_be_visible()


LONG_PACKET = {**ASKED, **{f"line_{n}": f"The {n}th thing that is sent along. " * 6 for n in range(12)}}
COVERED = """() => {
  const at = document.activeElement, bar = document.querySelector(".decide-bar").getBoundingClientRect().top;
  const { top, bottom } = at.getBoundingClientRect();
  return at.closest(".decide-bar") || bottom <= bar + 1 || bottom - top > bar - 100 ? "" : at.outerHTML;
}"""


@proves("R-UI-11", part="the decision stays in sight")
@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
@pytest.mark.parametrize("script", [True, False])
def test_the_decision_stays_in_sight_and_covers_nothing_focused(
    page_as: PageAs, desk: Desk, width: int, script: bool
) -> None:
    request = desk.ask(arguments=LONG_PACKET)
    page = page_as("reviewer", width=width, script=script)
    page.goto(f"/approvals/{request.id}")
    for scroll in ("top", "bottom"):
        if scroll == "bottom":
            page.keyboard.press("End")
        expect(page.locator("[value=approve]")).to_be_in_viewport(ratio=1)
        expect(page.locator("summary[data-key=d]")).to_be_in_viewport(ratio=1)
    photograph(page, f"bar-{script}", width)
    for back in (False, True):
        for _ in range(24):
            page.keyboard.press("Shift+Tab" if back else "Tab")
            assert page.evaluate(COVERED) == ""
    page.locator("summary[data-key=d]").click()
    page.locator(f"#reason-{request.id}").fill("Too much.")
    expect(page.locator(f"#reason-{request.id}")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Tab")
    expect(page.locator("[value=reject]")).to_be_focused()
    expect(page.locator("[value=reject]")).to_be_in_viewport(ratio=1)


@proves("R-UI-4", part="the card follows the words of others")
def test_the_first_of_two_words_shows_at_once_on_the_other_s_card(page_as: PageAs, desk: Desk) -> None:
    request = desk.ask(quorum=2)
    page = opened(page_as("reviewer"), f"/approvals/{request.id}")
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("0 of 2 agreed")
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    desk.say(request, desk.house.people.second_approver)
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("1 of 2 agreed")
    expect(page.locator("[value=approve]")).to_be_enabled()
    desk.say(request, desk.house.people.admin)
    expect(page.locator(f"#card-chip-{request.id}")).to_contain_text("Decided")
    expect(page.locator(f"#card-due-{request.id}")).to_contain_text("Was due")
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("2 of 2 agreed")
    expect(page.locator("[value=approve]")).to_be_disabled()


@proves("R-UI-4", part="other arguments that somebody agreed to show at once")
def test_another_s_edit_can_be_agreed_to_without_a_reload(page_as: PageAs, world: World) -> None:
    request = at_the_gate(world, "A-1003")
    page = opened(page_as("reviewer"), f"/approvals/{request.id}")
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    with tenant(world.id):
        packet = orjson.loads(bytes(Request.objects.get(id=request.id).packet))
    other = {**orjson.loads(packet["arguments"]), "amount": "250.00"}
    word = Word(kind=DecisionKind.EDIT, arguments=other)
    decide(world.id, request.id, world.people.second_approver.principal.id, word)
    expect(page.locator(".agree")).to_contain_text("250.00")
    page.locator(".agree [data-typed]").fill("250.00")
    page.wait_for_timeout(ARMED_MS)
    page.locator(".agree button[value=edit]").click()
    expect(page.locator(f"#card-chip-{request.id}")).to_contain_text("Decided")
    assert outcome(world.house, request) == ("decided", "edit")


@proves("R-UI-4", part="keys rest while something is typed")
def test_no_digit_decides_while_an_amount_is_typed(page_as: PageAs, world: World) -> None:
    request = at_the_gate(world)
    page = opened(page_as("reviewer"))
    page.keyboard.press("e")
    page.locator('[name="f:/amount"]').fill("12.5")
    typed = page.locator(f"#preview-{request.id} [data-typed]")
    typed.fill("1")
    page.locator('[name="f:/amount"]').press("End")
    page.keyboard.type("1")
    typed.press("End")
    page.keyboard.type("232")
    expect(page.locator(f"#preview-{request.id} ins")).to_have_text("12.51")
    page.locator("article.decision h2").click()
    page.keyboard.type("123")
    expect(page.locator(".panel[open] [name='f:/amount']")).to_be_visible()
    expect(typed).to_have_value("1232")
    assert outcome(world.house, request) == ("pending", "")


@proves("R-UI-11", part="a refused word comes back in place")
@pytest.mark.parametrize("script", [True, False])
def test_a_refused_word_comes_back_to_the_card_with_what_was_typed(
    page_as: PageAs, world: World, no_messages: Messages, script: bool
) -> None:
    request = at_the_gate(world)
    no_messages.expect("422")
    page = opened(page_as("reviewer", script=script))
    page.locator(".approve [data-typed]").fill("15")
    page.locator("[value=approve]").click()
    expect(page.locator("#notice")).to_contain_text("Nothing was decided yet.")
    expect(page.locator(".approve .field-error")).to_contain_text("129.90")
    expect(page.locator(".approve [data-typed]")).to_have_value("15")
    assert page.url.endswith("/approvals" if script else f"/approvals/{request.id}")
    if script:
        expect(page.locator("#notice")).to_be_focused()
    page.locator(".approve [data-typed]").fill("129.90")
    page.wait_for_timeout(ARMED_MS)
    page.locator("[value=approve]").click()
    page.wait_for_url("**/approvals?*done=*")
    assert outcome(world.house, request) == ("decided", "approve")


@proves("R-UI-4", part="a page out of touch looks again before it decides")
def test_a_press_on_a_page_out_of_touch_looks_first(
    page_as: PageAs, desk: Desk, no_messages: Messages
) -> None:
    request = desk.ask(quorum=2)
    page = out_of_touch(page_as, request, no_messages)
    desk.say(request, desk.house.people.second_approver)
    page.locator(".approve [data-typed]").fill("150")
    page.locator("[value=approve]").click()
    expect(page.locator("#notice")).to_contain_text("Nothing was decided.")
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("1 of 2 agreed")
    assert len(desk.said(request)) == 1


def test_a_press_on_a_page_out_of_touch_decides_where_nothing_changed(
    page_as: PageAs, world: World, no_messages: Messages
) -> None:
    request = at_the_mail(world)
    page = out_of_touch(page_as, request, no_messages)
    page.locator("[value=approve]").click()
    expect(page.locator(f"#card-state-{request.id}")).to_contain_text("said yes")


def out_of_touch(page_as: PageAs, request: Request, messages: Messages) -> Page:
    """A request's page that neither a socket nor a look reaches."""
    messages.expect("ERR_FAILED")
    page = page_as("reviewer")
    page.route_web_socket("**/ws/inbox", lambda socket: socket.close())
    page.route("**/changes.html*", lambda route: route.abort())
    opened(page, f"/approvals/{request.id}")
    expect(page.locator("html")).to_have_attribute("data-link", "reconnecting")
    return page


@proves("R-SEC-5", part="hostile text in a field is shown marked")
def test_a_field_with_hidden_letters_shows_them(page_as: PageAs, desk: Desk, no_messages: Messages) -> None:
    note, one = {"type": "string", "maxLength": 3}, {"enum": ["a\u202eb", "c"]}
    schema = {"type": "object", "properties": {"note": note, "one": one}}
    request = desk.ask(kind="clarification", answer_schema=schema, submitter=desk.house.people.approver)
    no_messages.expect("422")
    page = opened(page_as("reviewer"), f"/approvals/{request.id}")
    assert "a[U+202E]b" in page.locator("select option").all_inner_texts()
    page.locator("[name='a:/note']").fill("pay \u202e052 to them")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".field-marks .mark")).to_have_text("U+202E")
    expect(page.locator("[name='a:/note']")).to_have_value("pay \u202e052 to them")


def furnished(desk: Desk) -> list[Request]:
    """Every kind of card."""
    return [
        desk.ask(arguments={**ASKED, "note": "\u202eevil\u200b " + "long" * 900}, quorum=2),
        desk.ask(kind="reconciliation"),
        desk.ask(kind="clarification", answer_schema=ANSWER, submitter=desk.house.people.approver),
        desk.ask(submitter=desk.house.people.approver),
    ]


@proves("R-UI-11", part="axe finds nothing in the inbox")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_axe_finds_nothing(page_as: PageAs, desk: Desk, world: World, theme: str, width: int) -> None:
    asked = furnished(desk)
    gate = at_the_gate(world)
    decided = desk.ask()
    desk.say(decided, desk.house.people.second_approver, "reject", reason="no")
    page = page_as("reviewer", width=width, theme=theme)
    for request in (*asked, decided):
        page.goto(f"/approvals/{request.id}")
        axe(page)
    for path in (
        "/approvals",
        "/approvals?tab=decided",
        "/approvals?tool=none.such",
        f"/approvals?open={gate.id}",
    ):
        page.goto(path)
        axe(page)
    page.keyboard.press("e")
    page.locator('[name="f:/amount"]').fill("1.50")
    expect(page.locator(f"#preview-{gate.id} ins")).to_be_visible()
    axe(page)


def test_nothing_scrolls_sideways_at_320(page_as: PageAs, desk: Desk, world: World) -> None:
    page = page_as("reviewer", width=NARROWEST)
    for request in (*furnished(desk), at_the_gate(world)):
        page.goto(f"/approvals/{request.id}")
        for panel in page.locator("details").all():
            panel.evaluate("one => one.open = true")
        no_sideways(page)
    page.goto("/approvals")
    no_sideways(page)
    page.locator("[data-open]").first.click()
    expect(page.locator("article.decision")).to_be_visible()
    expect(page.locator(".pane-list")).to_be_hidden()


def test_the_sheet_lists_the_keys_of_a_decision(page_as: PageAs, world: World, visitors: Visitors) -> None:
    at_the_gate(world)
    page = opened(page_as("reviewer"))
    page.keyboard.press("?")
    sheet = page.locator("#sheet-body")
    for words in ("Approve", "Edit the arguments", "Reject", "Send what is being decided", "Next"):
        expect(sheet.get_by_text(words, exact=True).first).to_be_visible()
