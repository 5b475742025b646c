"""The inbox in a browser: from the keyboard, two at once, without script, in both themes and narrow."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson
import psycopg
import pytest
from playwright.sync_api import Page, expect

from approvals.models import Decision, Request
from tenancy.core.demo_users import PASSWORD
from tenancy.db.tenant_context import tenant_transaction
from tests.browser.conftest import PageAs
from tests.browser.harness import (
    NARROW,
    NARROWEST,
    WIDE,
    Messages,
    Visitors,
    axe,
    no_sideways,
    photograph,
    themes,
)
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.approvals import ASKED, Desk, open_desk
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

ANSWER = {"type": "object", "properties": {"order": {"enum": ["last", "first"]}}, "required": ["order"]}
ARMED_MS = 800
PLACES = ("/approvals", "/approvals?tab=decided", "/approvals?tab=snoozed", "/approvals?tool=none.such")


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
    with tenant_transaction(house.tenant.id):
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


@proves("R-UI-4", part="ask the agent from the keyboard and read its answer")
@proves("R-APPR-3", part="revise: by keys")
def test_a_reviewer_asks_the_agent_and_reads_the_next_proposal(
    page_as: PageAs, world: World, no_messages: Messages
) -> None:
    run = world.submit("incident-triage", "Find out what is wrong.", inputs={"service": "checkout"})
    world.drive(run)
    (first,) = world.open_requests(run)
    page = opened(page_as("reviewer"))
    page.keyboard.press("2")
    field = page.locator(f"#words-{first.id}")
    expect(field).to_be_focused()
    no_messages.expect("422")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#notice")).to_contain_text("Nothing was decided yet.")
    expect(field).to_be_visible()
    axe(page)
    page.wait_for_timeout(ARMED_MS)
    field.focus()
    page.keyboard.type("Why is a restart the cure?")
    page.keyboard.press("Control+Enter")
    expect(page.locator(f"#request-{first.id}.settled")).to_be_visible()
    assert outcome(world.house, first) == ("decided", "revise")
    world.drive(run)
    (second,) = world.open_requests(run)
    page = opened(page, f"/approvals/{second.id}")
    expect(page.locator(".anew")).to_contain_text("Why is a restart the cure?")
    expect(page.locator(".anew")).to_contain_text("Because of what its log says")
    page.keyboard.press("r")
    expect(page.locator(f"#words-{second.id}")).to_be_focused()
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in themes(page):
            axe(page, theme)
            photograph(page, theme, width)
    no_sideways(page)
    page.goto(f"/runs/{run}?tab=messages")
    expect(page.locator(".voice-person")).to_contain_text("Why is a restart the cure?")


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


# To the page no time passes until it is let: how long a driver takes to look at it is the machine's.
STILL = "const now = Date.now, at = now(); window.still = true; Date.now = () => (still ? at : now());"


@proves("R-APPR-10", part="a slip of the finger")
def test_a_button_rests_right_after_the_card_changed(page_as: PageAs, world: World) -> None:
    request = at_the_mail(world)
    page = page_as("reviewer")
    page.add_init_script(STILL)
    page.goto("/approvals")
    expect(page.locator("[data-disarmed]").first).to_be_visible()
    expect(page.locator("[value=approve]")).not_to_be_focused()
    page.keyboard.press("a")
    assert outcome(world.house, request) == ("pending", "")
    page.evaluate("still = false")
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
    expect(other.locator(f"#card-state-{request.id}")).to_contain_text("the reviewer approved")
    expect(other.locator("[value=approve]")).to_be_disabled()
    expect(other.locator("[value=claim], [value=snooze], [value=assign]")).to_have_count(3)
    expect(other.locator(":is([value=claim], [value=snooze], [value=assign]):enabled")).to_have_count(0)
    expect(other.locator(".decide summary.button:visible")).to_have_count(0)
    no_messages.expect("409")
    slow.locator("[value=approve]").click()
    expect(slow.locator("#notice")).to_contain_text("already decided")
    expect(slow.locator(f"#card-state-{request.id}")).to_contain_text("the reviewer approved")
    with tenant_transaction(world.id):
        (counted,) = Decision.objects.filter(request_id=request.id)
    for loser in (other, slow):
        said = loser.locator(f"#card-state-{request.id} .said time")
        expect(said).to_be_visible()
        assert datetime.fromisoformat(said.get_attribute("datetime") or "") == counted.at
        expect(said).not_to_be_empty()


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
    old = desk.ask(quorum=2)
    page = opened(page_as("reviewer"))
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    expect(page).to_have_title("(1) Approvals – Interlock")
    desk.say(old, desk.house.people.admin)
    expect(page.locator(f"#card-agreed-{old.id}")).to_have_text("1 of 2 agreed")
    expect(page.locator("#live-new")).to_have_count(0)
    expect(page.locator("#together")).to_be_hidden()
    new, gone = (desk.ask(risk="network", has_amount=False) for _ in range(2))
    expect(page.get_by_role("button", name="2 new requests")).to_be_visible()
    expect(page.locator("#together")).to_be_visible()
    expect(page.locator("#count-mine, #nav-pending")).to_contain_text(["3", "3"])
    expect(page).to_have_title("(3) Approvals – Interlock")
    desk.say(gone, desk.house.people.admin, "reject", reason="no")
    page.get_by_role("button", name="1 new request").click()
    expect(page.locator("#arrivals > li")).to_have_id(f"item-{new.id}")
    expect(page.locator("#arrivals .pick")).to_be_hidden()
    expect(page).to_have_title("(2) Approvals – Interlock")


FAILING = """times => {
  const real = Element.prototype.replaceWith;
  Element.prototype.replaceWith = function (...all) {
    if (this.id.startsWith("card-agreed") && times-- > 0) throw new Error("cannot be shown");
    return real.apply(this, all);
  };
}"""


@proves("R-UI-3", part="a change that could not be shown is asked for again, and twice is said")
def test_what_could_not_be_shown_is_asked_for_again(
    page_as: PageAs, desk: Desk, no_messages: Messages
) -> None:
    no_messages.expect("A change could not be shown.")
    asked = desk.ask(quorum=3)
    page = opened(page_as("reviewer"))
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    page.evaluate(FAILING, 1)
    desk.say(asked, desk.house.people.admin)
    expect(page.locator(f"#card-agreed-{asked.id}")).to_have_text("1 of 3 agreed")
    page.evaluate(FAILING, 2)
    desk.say(asked, desk.house.people.second_approver)
    expect(page.locator("#pill")).to_contain_text("Lost the place")


@proves("R-APPR-9", part="claim and put aside from the keyboard, live for others")
def test_a_claim_by_key_shows_on_the_other_s_card_and_row(page_as: PageAs, desk: Desk) -> None:
    request = desk.ask()
    other = opened(page_as("second-reviewer"))
    page = opened(page_as("reviewer"))
    expect(other.locator("#pill")).to_have_attribute("data-pill", "live")
    page.keyboard.press("m")
    expect(page.locator("#messages")).to_contain_text("Claimed by you.")
    expect(other.locator(f"#card-held-{request.id}")).to_have_text("with the reviewer")
    expect(other.locator(f"#request-{request.id}")).to_contain_text("with the reviewer")
    expect(other.locator("[value=claim]")).to_have_count(0)
    page.keyboard.press("h")
    expect(page.locator("select[name=until]")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".pane-list")).to_contain_text("Nothing waits for you.")
    expect(page.locator("nav.tabs [href*=snoozed]")).to_contain_text("1")


@proves("R-APPR-9", part="bulk from the keyboard")
def test_several_are_picked_by_key_and_shown_side_by_side(
    page_as: PageAs, desk: Desk, no_messages: Messages
) -> None:
    low: dict[str, Any] = {"risk": "network", "has_amount": False}
    asked = [desk.ask(arguments={**ASKED, "order_id": f"A-{n}"}, **low) for n in range(3)]
    for width, theme in ((WIDE, "light"), (NARROW, "dark"), (NARROWEST, "light")):
        page = opened(page_as("reviewer", width=width, theme=theme))
        axe(page)
        no_sideways(page)
        for key in "jxjx":
            page.keyboard.press(key)
        expect(page.locator("[data-pick]:checked")).to_have_count(2)
        page.keyboard.press("b")
        page.wait_for_url("**/approvals/bulk*")
        expect(page.locator("tbody tr")).to_have_count(2)
        axe(page)
        no_sideways(page)
    no_messages.expect("422")
    page.get_by_role("button", name="Reject 2").click()
    expect(page.locator("#notice")).to_contain_text("a reason is missing")
    assert [desk.said(one) for one in asked] == [[], [], []]


def furnished(desk: Desk) -> list[Request]:
    """Every kind of card."""
    return [
        desk.ask(arguments={**ASKED, "note": "\u202eevil\u200b " + "long" * 900}, quorum=2),
        desk.ask(kind="reconciliation"),
        desk.ask(kind="clarification", answer_schema=ANSWER, submitter=desk.house.people.approver),
        desk.ask(submitter=desk.house.people.approver),
    ]


@proves("R-UI-11", part="axe finds nothing in the inbox")
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.slow
def test_axe_finds_nothing(page_as: PageAs, desk: Desk, world: World, width: int) -> None:
    asked = furnished(desk)
    gate = at_the_gate(world)
    decided = desk.ask()
    desk.say(decided, desk.house.people.second_approver, "reject", reason="no")
    page = page_as("reviewer", width=width)
    cards = [f"/approvals/{request.id}" for request in (*asked, decided)]
    for path in (*cards, *PLACES, f"/approvals?open={gate.id}"):
        page.goto(path)
        for theme in themes(page):
            axe(page, theme)
    page.keyboard.press("e")
    page.locator('[name="f:/amount"]').fill("1.50")
    expect(page.locator(f"#preview-{gate.id} ins")).to_be_visible()
    for theme in themes(page):
        axe(page, theme)


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
