"""Fixtures of the browser suite: a running site, pages as somebody, no message in any console.

Playwright's own pytest plugin is not loaded: it would cost every run of the suite a second. Without Chromium
the suite is skipped, unless `INTERLOCK_BROWSER_REQUIRED` is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect, sync_playwright

from config.devstack.embedded import EmbeddedValkey
from tests.browser.harness import CHROMIUM, WIDE, Messages, Site, Visitors, Windows, start
from tests.conftest import House
from tests.factories.tenancy import Somebody
from tests.servers import TestServers

ROLES = {
    "reviewer": "approver", "second-reviewer": "second_approver", "operator": "operator", "admin": "admin",
    "auditor": "auditor", "submitter": "submitter", "stranger": "stranger",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without Chromium there is nothing to see."""
    if CHROMIUM is not None or os.environ.get("INTERLOCK_BROWSER_REQUIRED"):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="no Chromium here"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, one for all tests of this process.

    Playwright keeps an event loop in this thread, and Django would take the tests' own reads for async ones.
    """
    # What is there is seen at once; what is not must not be taken for missing because the machine is busy.
    expect.set_options(timeout=15_000)
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = start(playwright)
        yield browser
        browser.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def site(
    servers: TestServers, valkey: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A web server on the tests' database, in a process of its own; `site.start_worker()` adds a worker."""
    environment = {
        **os.environ,
        **servers.environment(),
        "REDIS_URL": valkey.url,
        "INTERLOCK_SECRET_KEY": settings.SECRET_KEY,
        "INTERLOCK_LOG_FORMAT": "json",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1",
    }
    environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    found = Site(environment, tmp_path_factory.mktemp("site"))
    try:
        found.start()
        yield found
    finally:
        found.end()


@pytest.fixture(autouse=True)
def no_messages() -> Iterator[Messages]:
    """Fails a test whose pages wrote anything to the console."""
    messages = Messages()
    yield messages
    assert messages.surprises == []


@pytest.fixture(scope="session")
def windows(chromium: Browser, site: Site) -> Windows:
    """Browsers that the tests of this process take turns with."""
    return Windows(chromium, site.url)


@pytest.fixture
def visitors(windows: Windows, no_messages: Messages) -> Iterator[Visitors]:
    """Pages, closed after the test."""
    found = Visitors(windows, no_messages)
    yield found
    found.leave()


PageAs = Callable[..., Page]


@pytest.fixture
def page_as(visitors: Visitors, house: House) -> PageAs:
    """`page_as("reviewer", width=390, theme="dark", script=False)`: a page signed in as one of the cast."""

    def open_page(role: str | None, *, width: int = WIDE, theme: str = "light", script: bool = True) -> Page:
        somebody: Somebody | None = None if role is None else getattr(house.people, ROLES[role])
        person = somebody.person if somebody is not None else None
        return visitors.page(person, width=width, theme=theme, script=script)

    return open_page
