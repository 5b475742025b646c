"""A running house for browsers: web server and worker in processes of their own, on the tests' database."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from config.devstack import process_specs
from config.devstack.child_process import Command
from tenancy.models import Person

CHROMIUM = os.environ.get("INTERLOCK_CHROMIUM") or shutil.which("chromium")
# Root has no sandbox; the rest keeps the browser from asking anybody outside for anything.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, NARROW, NARROWEST = 1280, 390, 320
START_SECONDS = 90.0
# As many windows as one test has open at once, and the same again in another width.
KEPT = 6
# Two frames on, what a new theme changed has been laid out and painted.
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# When a page lost its connection and when its pill said so, by the page's own clock: as `lost`.
PILL_WATCH = """const Native = WebSocket;
window.lost = {};
window.WebSocket = class extends Native {
  constructor(...given) {
    super(...given);
    this.addEventListener("close", () => { lost.at ??= performance.now(); });
  }
};
addEventListener("offline", () => { lost.at ??= performance.now(); });
new MutationObserver(() => {
  const says = document.getElementById("pill")?.textContent ?? "";
  if (lost.at && says.startsWith("Reconnecting")) lost.told ??= performance.now();
}).observe(document, { childList: true, subtree: true, characterData: true });"""
AXE = Axe()


def start(playwright: Playwright) -> Browser:
    """The system's Chromium."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))


class Child:
    """A process of the house; its output goes to a file that a failed start shows."""

    def __init__(self, command: Command, log: Path) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command.argv, cwd=command.folder, env=dict(command.environment), stdout=out, stderr=out
            )

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Raises AssertionError with the end of its output when it dies or is not ready in time."""
        until = time.monotonic() + START_SECONDS
        while not ready():
            alive = self.process.poll() is None and time.monotonic() < until
            assert alive, self.log.read_text(errors="replace")[-4000:]
            time.sleep(0.05)

    def end(self, *, kill: bool = False) -> None:
        """Stop it; `kill` gives it no chance to say goodbye."""
        if self.process.poll() is None:
            self.process.kill() if kill else self.process.terminate()
        self.process.wait(20)


@dataclass
class Site:
    """The web server under `url` (localhost, which browsers take for secure), and maybe a worker."""

    environment: dict[str, str]
    folder: Path
    port: int = field(default_factory=process_specs.free_port)
    web: Child | None = None
    worker: Child | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        """Start the web server and wait until it answers."""
        environment = self.environment | {"INTERLOCK_PORT": str(self.port)}
        part = process_specs.build_web_part("127.0.0.1", self.port, environment)
        self.web = Child(part.command(), self.folder / "web.log")
        self.web.wait_until(part.ready)

    def stop(self, *, kill: bool = False) -> None:
        """Stop the web server, or kill it."""
        if self.web is not None:
            self.web.end(kill=kill)
            self.web = None

    def start_worker(self, **more: str) -> None:
        """Start a worker, with `more` in its environment. It drives every run of the database that is ready,
        those of other tests too: `Clock.park_the_rest` before, and stop it after the test.
        """
        part = process_specs.build_worker_part(self.folder, self.environment | more, threads=4, drain=1)
        part.before()
        self.worker = Child(part.command(), self.folder / "worker.log")
        self.worker.wait_until(part.ready)

    def stop_worker(self) -> None:
        """Stop the worker; it gives back what it has in hand."""
        if self.worker is not None:
            self.worker.end()
            self.worker = None

    def end(self) -> None:
        """Stop everything."""
        self.stop()
        self.stop_worker()


@dataclass
class Messages:
    """What the browser's console said. `expect` names what a test provokes on purpose."""

    heard: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        """Hear a page."""
        page.on("console", lambda message: self.heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))

    def expect(self, part: str) -> None:
        """A message with this in it is no surprise."""
        self.expected.append(part)

    @property
    def surprises(self) -> list[str]:
        """What nobody expected."""
        return [text for text in self.heard if not any(part in text for part in self.expected)]


Shape = tuple[int, str, bool]


@dataclass
class Windows:
    """Browsers that tests take turns with, by width, theme and whether scripts run. A fresh one opens a
    window with pages of the browser's own and asks for every file again: more than most tests do in it.
    """

    browser: Browser
    url: str
    free: list[tuple[Shape, BrowserContext]] = field(default_factory=list)

    def take(self, shape: Shape) -> BrowserContext:
        """One that nobody uses, without a cookie. Its first page stays blank and keeps the window open."""
        for found in self.free:
            if found[0] == shape:
                self.free.remove(found)
                return found[1]
        width, theme, script = shape
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=script, base_url=self.url, reduced_motion="reduce",
        )  # fmt: skip
        context.new_page()
        return context

    def give_back(self, shape: Shape, context: BrowserContext) -> None:
        """Leave nothing of a visit in it for the next; the one that was left longest ago goes."""
        for page in context.pages[1:]:
            page.close()
        context.clear_cookies()
        self.free.append((shape, context))
        if len(self.free) > KEPT:
            self.free.pop(0)[1].close()


@dataclass
class Visitors:
    """Opens pages as somebody."""

    windows: Windows
    messages: Messages
    taken: list[tuple[Shape, BrowserContext]] = field(default_factory=list)

    def page(
        self, person: Person | None = None, *, width: int = WIDE, theme: str = "light", script: bool = True
    ) -> Page:
        """A page of a browser of its own, signed in as `person` (None: a stranger), on no address yet."""
        shape = (width, theme, script)
        context = self.windows.take(shape)
        self.taken.append((shape, context))
        if person is not None:
            context.add_cookies([{"name": "sessionid", "value": session_of(person), "url": self.windows.url}])
        page = context.new_page()
        page.set_default_timeout(10_000)
        self.messages.listen(page)
        return page

    def leave(self) -> None:
        """Close what was opened."""
        for shape, context in self.taken:
            self.windows.give_back(shape, context)
        self.taken.clear()


def session_of(person: Person) -> str:
    """A session of a person, as signing in would have made it."""
    client = Client()
    client.force_login(person)
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def themes(page: Page) -> Iterator[str]:
    """The page that is open in the dark theme and then in the light one."""
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        page.evaluate(DRAWN)
        yield theme


def axe(page: Page, theme: str = "light") -> None:
    """No violation of any rule of axe, no id that two things may share, and no cell of a table whose colours
    it could not tell (one that is cut off). `theme` is the one that the page is shown in. Raises
    AssertionError with what and where.
    """
    if page.evaluate("typeof window.axe") == "undefined":
        page.evaluate(AXE.axe_script)
    options = {"resultTypes": ["violations", "incomplete"]}
    response: Any = page.evaluate("(options) => axe.run(options)", options)
    found: Any = [*response["violations"], *filter(None, map(_undecided, response["incomplete"]))]
    said = [
        f"{one['id']}: {one['help']}\n"
        + "\n".join(
            f"  {node['target']} {node['html'][:160]}\n  {node['failureSummary'][:300]}"
            for node in one["nodes"][:4]
        )
        for one in found
    ]
    assert not said, f"{page.url} ({theme})\n" + "\n".join(said)


def _undecided(one: dict[str, Any]) -> dict[str, Any] | None:
    """What of a rule that axe leaves to people must be settled here; None: nothing."""
    if one["id"] == "duplicate-id-aria":
        return one
    # The bar that decides scrolls within itself: what stands in it may be cut.
    shown = (node for node in one["nodes"] if "#preview-" not in str(node["target"]))
    cells = [node for node in shown if node["html"].startswith(("<th", "<td"))]
    return {**one, "nodes": cells} if one["id"] == "color-contrast" and cells else None


def no_sideways(page: Page) -> None:
    """The page fits its width."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{page.url} is {wide} px too wide"


def photograph(page: Page, theme: str, width: int) -> None:
    """Keep a picture where `INTERLOCK_SHOTS` names a folder."""
    if folder := os.environ.get("INTERLOCK_SHOTS"):
        name = page.url.partition("://")[2].partition("/")[2].replace("/", "-").strip("-?") or "overview"
        page.screenshot(path=Path(folder) / f"{name}-{theme}-{width}.png", full_page=True)


def assert_told_in_time(page: Page) -> None:
    """The pill of a page with `PILL_WATCH` has said within two seconds of the loss that its connection is
    lost (CONSOLE 2.14)."""
    lost = page.evaluate("lost")
    assert 0 <= lost["told"] - lost["at"] <= 2_000, lost
    # Where a test noted the time before it killed the server, what the page was slow to notice counts too.
    assert 0 <= lost["told"] - lost.get("noted", lost["at"]) <= 2_000, lost
