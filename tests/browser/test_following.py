"""static/js/live.js on a page of its own, against a feed that plays what it is told (CONSOLE 2.9)."""

import re
import time
from collections.abc import Iterator, MutableMapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import pytest
from channels.routing import ProtocolTypeRouter
from django.db import connection
from playwright.sync_api import Browser, Page, expect

from config.devstack.embedded import EmbeddedValkey
from config.live.routing import build_socket_router
from tenancy.models import BrowserSession
from tests.browser.harness import PILL_WATCH, Messages, assert_told_in_time, session_of
from tests.conftest import House
from tests.doors.live.serving import QUICK, Serving
from tests.factories.announcing import announced
from tests.proves import proves
from tests.servers import ROOT
from traces.consumers.websocket import Socket
from traces.live.hints import publish_event_hint
from traces.live.hub import Hub
from traces.live.scripted_feed import ScriptedFeed

HEAD = """<!DOCTYPE html><html lang="en" data-version="{version}"><title>Following</title>
<style>[aria-live] {{ position: absolute; left: -999px }} #live-new {{ position: fixed; bottom: 0 }}</style>
<script type="module" src="/js/live.js"></script>
<span id="pill" hidden></span><div id="polite" aria-live="polite"></div>
<div id="assertive" aria-live="assertive"></div>"""
REGION = """<div data-live="/ws/runs/{run}" data-seq="{seq}"><p id="count">0</p><ol id="timeline"></ol></div>
<button id="decide" data-needs-fresh>Approve</button></html>"""
# A page that has lost its server for a while tries again every fifteen seconds.
BACK_SECONDS = 20


class Feed(ScriptedFeed):
    """Plays events, and more that a test wants on the page."""

    extra = ""

    def render(self, *arguments: Any) -> Any:
        """The rows, and whatever a test adds."""
        found = super().render(*arguments)
        return found._replace(html=found.html + self.extra)


@dataclass
class Stage:
    """A page's server: what it plays, and how it behaves."""

    feed: Feed
    run: UUID
    sockets: bool = True
    build: str = ""
    serving: Serving | None = None
    port: int = 0

    def start(self) -> None:
        """Serve, always at the same address."""
        self.serving = Serving(self.application, QUICK, self.port)
        self.port = self.serving.port

    def stop(self) -> None:
        """Stop as a deployment does."""
        assert self.serving is not None
        self.serving.stop()

    def application(self, hub: Hub) -> Any:
        """The page, its modules, the fallback, and the socket."""
        hub.build = self.build or hub.build
        self.version = getattr(self, "version", hub.build)
        following = build_socket_router({"^ws/runs/(?P<subject>[0-9a-f-]{36})$": Socket(hub, self.feed)})

        async def maybe(scope: Any, receive: Any, send: Any) -> None:
            if self.sockets:
                await following(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close"})

        return ProtocolTypeRouter({"http": self.http, "websocket": maybe})

    async def http(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Three addresses."""
        path, kind, status, more = scope["path"], b"text/html", 200, list[tuple[bytes, bytes]]()
        if path.startswith("/js/"):
            body, kind = (ROOT / "static" / path[1:]).read_bytes(), b"text/javascript"
        elif path.endswith("/events.html"):
            after = int(parse_qs(scope["query_string"].decode()).get("after", ["0"])[0])
            found = self.feed.render(self.run, self.run, after, ())
            body, more = (
                found.html.encode(),
                [(b"interlock-seq", b"%d" % found.seq), (b"etag", b'"%d"' % found.seq)],
            )
            if dict(scope["headers"]).get(b"if-none-match") == more[1][1]:
                status, body = 304, b""
        elif path == "/":
            body = (HEAD.format(version=self.version) + REGION.format(run=self.run, seq=0)).encode()
        else:
            status, body = 204, b""
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind), *more]}
        )
        await send({"type": "http.response.body", "body": body})

    def play(self, *texts: str) -> None:
        """Say some events, and that they are there."""
        seq = self.feed.append(self.run, self.run, *(text.encode() for text in texts))
        publish_event_hint(self.run, self.run, seq)


@pytest.fixture
def stage(house: House, valkey: EmbeddedValkey) -> Iterator[Stage]:
    """A stage with one event played. Its run has the tenant's id."""
    with announced(valkey):
        found = Stage(Feed(), house.tenant.id)
        found.feed.append(found.run, found.run, b"first")
        found.start()
        yield found
        found.stop()


@pytest.fixture
def page(chromium: Browser, stage: Stage, house: House, no_messages: Messages) -> Iterator[Page]:
    """The page, open, with the first event on it."""
    context = chromium.new_context(base_url=f"http://localhost:{stage.port}", reduced_motion="reduce")
    cookie = session_of(house.people.operator.person)
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": f"http://localhost:{stage.port}"}])
    with closing(context):
        page = context.new_page()
        page.set_default_timeout(10_000)
        no_messages.listen(page)
        no_messages.expect("WebSocket connection to")
        no_messages.expect("ERR_CONNECTION")
        page.goto("/")
        expect(page.locator("#pill")).to_have_text("Live")
        expect(page.locator("#timeline li")).to_have_count(1)
        yield page


def rows(page: Page) -> list[str]:
    """What the timeline shows."""
    return page.locator("#timeline li").all_inner_texts()


def pill(page: Page, text: str | re.Pattern[str], patience: float = 10) -> None:
    """The pill says so in time."""
    expect(page.locator("#pill")).to_have_text(text, timeout=patience * 1000)


def test_events_arrive_without_a_reload(page: Page, stage: Stage) -> None:
    for number in range(2, 30):
        stage.play(f"event {number}")
        time.sleep(0.02)
    expect(page.locator("#timeline li")).to_have_count(29)
    assert rows(page) == ["first", *(f"event {number}" for number in range(2, 30))]
    expect(page.locator("#count")).to_have_text("29")


@proves("R-SESS-11", part="a page whose server was restarted catches up")
def test_a_restart_shows_within_two_seconds_and_is_caught_up(page: Page, stage: Stage) -> None:
    stage.play("second")
    stage.stop()
    pill(page, re.compile("Reconnecting in [0-9]+ s – Retry now"), 2)
    stage.play("third", "fourth")
    stage.start()
    pill(page, "Live", BACK_SECONDS)
    stage.play("fifth")
    expect(page.locator("#timeline li")).to_have_count(5)
    assert rows(page) == ["first", "second", "third", "fourth", "fifth"]


@proves("R-UI-3", part="a lost connection is said within two seconds, whichever way it is lost")
@pytest.mark.parametrize("gone", ["server", "network"])
def test_the_pill_says_within_two_seconds_of_the_loss_that_it_is_lost(
    page: Page, stage: Stage, gone: str
) -> None:
    page.add_init_script(PILL_WATCH)
    page.reload()
    pill(page, "Live")
    if gone == "server":
        stage.stop()
    else:
        page.context.set_offline(True)
    pill(page, re.compile("Reconnecting in [0-9]+ s – Retry now"))
    assert_told_in_time(page)
    if gone == "server":
        stage.start()
    else:
        stage.play("second")
        page.context.set_offline(False)
    pill(page, "Live", BACK_SECONDS)
    expect(page.locator("#timeline li")).to_have_count(1 if gone == "server" else 2)


def test_nothing_moves_under_the_pointer(page: Page, stage: Stage) -> None:
    page.locator("#e1").hover()
    before = page.locator("#e1").bounding_box()
    stage.play("second", "third")
    offer = page.locator("#live-new")
    expect(offer).to_have_text("2 new events ↓")
    stage.play("fourth")
    expect(offer).to_have_text("3 new events ↓")
    assert page.locator("#e1").bounding_box() == before
    assert rows(page) == ["first"]
    offer.click()
    expect(offer).to_have_count(0)
    assert rows(page) == ["first", "second", "third", "fourth"]
    expect(page.locator("#e4")).to_be_focused()


def test_focus_and_open_details_outlive_a_replacement(page: Page, stage: Stage) -> None:
    stage.feed.extra = (
        '<div id="decide"><details><summary>More</summary>x</details><button>One</button></div>'
    )
    stage.play("second")
    page.locator("#decide summary").click()
    page.locator("#decide button").focus()
    stage.feed.extra = (
        '<div id="decide"><details><summary>More</summary>y</details><button>Two</button></div>'
    )
    stage.play("third")
    expect(page.locator("#decide button")).to_have_text("Two")
    expect(page.locator("#decide button")).to_be_focused()
    expect(page.locator("#decide details")).to_have_attribute("open", "")


def test_what_is_being_edited_is_left_alone_until_it_is_left(page: Page, stage: Stage) -> None:
    stage.feed.extra = '<div id="decide"><input aria-label="Reason"></div>'
    stage.play("second")
    page.locator("#decide input").fill("half a sen")
    stage.feed.extra = '<div id="decide"><p>Decided by somebody</p></div>'
    stage.play("third")
    expect(page.locator("#timeline li")).to_have_count(3)
    assert page.locator("#decide input").input_value() == "half a sen"
    page.locator("#decide input").blur()
    expect(page.locator("#decide")).to_have_text("Decided by somebody")


def test_readers_are_told_politely_and_an_alarm_at_once(page: Page, stage: Stage) -> None:
    stage.feed.extra = (
        '<p id="count" data-say="run waits for approval" data-alert="Approval needed: refund">3</p>'
    )
    stage.play("second", "third")
    expect(page.locator("#assertive")).to_have_text("Approval needed: refund")
    expect(page.locator("#polite")).to_have_text(
        re.compile("[12] new events?, run waits for approval"), timeout=15_000
    )
    expect(page.locator("#assertive")).to_be_empty(timeout=15_000)


def test_a_lost_session_says_so(page: Page, stage: Stage) -> None:
    BrowserSession.objects.all().delete()
    connection.close()
    pill(page, "Signed out – Sign in")
    expect(page.locator("#assertive")).to_have_text("You are signed out.")
    expect(page.locator("#decide")).to_be_disabled()


def test_another_build_is_offered_and_never_forced(page: Page, stage: Stage) -> None:
    page.evaluate("window.kept = true")
    stage.stop()
    stage.build = "another"
    stage.start()
    pill(page, "New version – Reload", BACK_SECONDS)
    stage.play("second")
    expect(page.locator("#timeline li")).to_have_count(2)
    assert page.evaluate("window.kept")


def test_without_sockets_the_page_asks_every_few_seconds(page: Page, stage: Stage) -> None:
    stage.stop()
    stage.sockets = False
    stage.start()
    pill(page, "Polling", BACK_SECONDS)
    stage.play("second")
    expect(page.locator("#timeline li")).to_have_count(2)
    stage.play("third")
    expect(page.locator("#timeline li")).to_have_count(3)
    stage.sockets = True
    pill(page, "Live", BACK_SECONDS)
    assert rows(page) == ["first", "second", "third"]


@proves("R-UI-3", part="a page that polls says within two seconds that it is lost")
def test_a_page_that_polls_says_in_time_that_it_is_lost(page: Page, stage: Stage) -> None:
    page.add_init_script(PILL_WATCH)
    stage.sockets = False
    page.reload()
    pill(page, "Polling", BACK_SECONDS)
    link = "dispatchEvent(new Event('offline')), document.documentElement.dataset.link"
    assert page.evaluate(link) == "reconnecting"
    pill(page, "Polling", BACK_SECONDS)
    with page.expect_response("**/events.html*"):
        page.evaluate("lost = {}")
    stage.stop()
    # What a poll met while the server was stopping is no part of it.
    page.evaluate("lost = { at: performance.now() }")
    pill(page, re.compile("Reconnecting in [0-9]+ s – Retry now"))
    page.wait_for_function("lost.told")
    assert_told_in_time(page)
    stage.start()


def test_a_silent_server_is_stale_and_stops_decisions(page: Page, stage: Stage) -> None:
    page.clock.install()
    page.reload()
    pill(page, "Live")
    stage.feed.failing = True
    # The server vouches for a moment yet for what it read last; what it says then is heard with the new time.
    until = time.monotonic() + 15
    while not re.match("Stale since [0-9:]+ – Retry now", page.locator("#pill").inner_text()):
        assert time.monotonic() < until
        page.clock.fast_forward(200_000)
        page.wait_for_timeout(100)
    expect(page.locator("#decide")).to_be_disabled()
    stage.feed.failing = False
    page.clock.fast_forward(20_000)
    pill(page, "Live")
    expect(page.locator("#decide")).to_be_enabled()


# `heard()` has the page hear some words on its socket; how many listeners of the page were told of them.
# After `deaf()` it hears nothing else.
WORDS = """const Opened = WebSocket, sockets = [];
let told = 0, closed = false;
window.WebSocket = class extends Opened {
  constructor(...given) {
    super(...given);
    sockets.push(this);
    const real = (said) => closed && said.isTrusted && said.stopImmediatePropagation();
    this.addEventListener("message", real);
  }
};
window.deaf = () => { closed = true; };
document.addEventListener("interlock:delta", () => { told += 1; });
window.heard = () => {
  const data = JSON.stringify({ delta: { effect: "e", at: 0, text: "Words" } });
  sockets.at(-1).dispatchEvent(new MessageEvent("message", { data }));
  return told;
};"""


@proves("R-UI-3", part="what is being written is no sign that the page is fresh")
def test_words_alone_keep_no_page_fresh(page: Page, stage: Stage) -> None:
    page.add_init_script(WORDS)
    page.clock.install()
    page.reload()
    pill(page, "Live")
    page.evaluate("deaf()")
    page.clock.fast_forward(30_000)
    assert page.evaluate("heard()") == 1
    assert page.evaluate("document.documentElement.dataset.link") == "live"
    page.clock.fast_forward(20_000)
    pill(page, re.compile("Stale since [0-9:]+ – Retry now"))
