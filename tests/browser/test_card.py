"""The decision card in a browser: in sight, up to date, in place, and with nothing decided by accident."""

import orjson
import pytest
from playwright.sync_api import Dialog, Page, expect

from approvals.actions import DecisionInput, decide_request
from approvals.actions.assignment import AssignmentChange, update_assignment
from approvals.core.assignment import AssignmentAction
from approvals.core.lifecycle import DecisionKind
from approvals.core.packet import Proposal
from approvals.models import Request
from tenancy.db.tenant_context import tenant_transaction
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, NARROWEST, WIDE, Messages, photograph
from tests.browser.test_inbox import ARMED_MS, at_the_gate, at_the_mail, opened, outcome
from tests.browser.test_inbox import desk as desk
from tests.browser.test_inbox import world as world
from tests.factories.approvals import ASKED, Desk
from tests.factories.world import World
from tests.proves import proves

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
    request = desk.ask(arguments=LONG_PACKET, proposal=Proposal(number=1, most=3, returnable=True))
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
    expect(page.locator(f"#card-due-{request.id}")).to_contain_text("Had time until")
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("2 of 2 agreed")
    # The form is shut where it stands, and not there any more once the page is drawn anew.
    expect(page.locator("[value=approve]:enabled")).to_have_count(0)


@proves("R-UI-4", part="other arguments that somebody agreed to show at once")
def test_another_s_edit_can_be_agreed_to_without_a_reload(page_as: PageAs, world: World) -> None:
    request = at_the_gate(world, "A-1003")
    page = opened(page_as("reviewer"), f"/approvals/{request.id}")
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    with tenant_transaction(world.id):
        packet = orjson.loads(bytes(Request.objects.get(id=request.id).packet))
    other = {**orjson.loads(packet["arguments"]), "amount": "250.00"}
    word = DecisionInput(kind=DecisionKind.EDIT, arguments=other)
    decide_request(world.id, request.id, world.people.second_approver.principal.id, word)
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
    expect(page.locator(f"#card-state-{request.id}")).to_contain_text("approved")


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
    assert "a[U+202E]b" in [option.strip() for option in page.locator("select option").all_inner_texts()]
    page.locator("[name='a:/note']").fill("pay \u202e052 to them")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".field-marks .mark")).to_have_text("U+202E")
    expect(page.locator("[name='a:/note']")).to_have_value("pay \u202e052 to them")


@proves("R-UI-4", part="nothing out of sight is decided")
def test_no_digit_decides_a_card_that_a_narrow_window_does_not_show(page_as: PageAs, world: World) -> None:
    request = at_the_mail(world)
    page = page_as("reviewer", width=NARROW)
    page.goto("/approvals")
    expect(page.locator("article.decision")).to_be_hidden()
    page.wait_for_timeout(ARMED_MS)
    page.keyboard.type("13")
    page.wait_for_timeout(ARMED_MS)
    assert outcome(world.house, request) == ("pending", "")
    page.set_viewport_size({"width": WIDE, "height": 800})
    expect(page.locator("article.decision")).to_be_visible()
    page.keyboard.type("1")
    expect(page.locator("#notice, .notices, [role=status]").first).to_be_attached()
    expect(page.get_by_text("Approved.").first).to_be_visible()


@proves("R-UI-3", part="the card on a run's page follows, and keeps what its reader does")
def test_the_card_on_a_run_s_page_follows_and_loses_nothing(page_as: PageAs, world: World) -> None:
    request = at_the_gate(world, "A-1003")
    page = opened(page_as("reviewer"), f"/runs/{request.run_id}")
    expect(page.locator("#pill")).to_have_attribute("data-pill", "live")
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("0 of 2 agreed")
    page.locator(".handle summary").click()
    remark = page.locator(f"#remark-{request.id}")
    remark.fill("half a sen")
    page.locator("select[name=until]").select_option("60")
    page.locator("details:has(> dl.evidence) > summary").click()
    remark.focus()
    wish = AssignmentChange(kind=AssignmentAction.CLAIM)
    update_assignment(world.id, request.id, world.people.second_approver.principal.id, wish)
    expect(page.locator(f"#card-held-{request.id}")).to_have_text("with the reviewer")
    expect(page.locator("[value=claim]")).to_have_count(0)
    expect(remark).to_have_value("half a sen")
    expect(remark).to_be_focused()
    expect(page.locator("select[name=until]")).to_have_value("60")
    world.decide(request, world.people.second_approver)
    expect(page.locator(f"#card-agreed-{request.id}")).to_have_text("1 of 2 agreed")
    expect(page.locator("dl.evidence")).to_be_visible()
    page.locator("[value=approve]").focus()
    world.decide(request, world.people.admin)
    expect(page.locator(f"#card-chip-{request.id}")).to_contain_text("Decided")
    expect(page.locator(f"#card-due-{request.id}")).to_contain_text("Had time until")
    expect(page.locator("[value=approve]")).to_be_disabled()
    expect(page.locator(f"#card-state-{request.id}")).to_be_focused()
    expect(remark).to_have_value("half a sen")


CHANGED = "document.body.dispatchEvent(new Event('interlock:changed', { bubbles: true }))"


@proves("R-UI-11", part="what was settled long ago is no news, and holds nobody back")
def test_news_to_a_settled_card_says_nothing_and_a_form_that_is_gone_keeps_nobody(
    page_as: PageAs, desk: Desk
) -> None:
    old, new = desk.ask(), desk.ask()
    desk.say(old, desk.house.people.second_approver)
    page = opened(page_as("reviewer"), f"/approvals/{old.id}")
    page.evaluate(CHANGED)
    assert page.locator("#assertive").inner_text() == ""
    page.goto(f"/approvals/{new.id}")
    page.locator("summary[data-key=d]").click()
    page.locator(f"#reason-{new.id}").fill("Too much.")
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.evaluate("document.querySelector('.decide').remove()")
    page.goto("/runs")
    assert asked == []
