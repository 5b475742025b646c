"""A web server behind HTTPS, as a browser meets it: what its answers and its cookies say (R-SEC-5)."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection
from http.cookies import Morsel, SimpleCookie
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.core.cache import cache

from config.devstack import process_specs
from config.devstack.embedded import EmbeddedValkey
from tenancy.models import Person
from tenancy.web.session_store import SessionStore
from tests.conftest import House
from tests.proves import proves
from tests.servers import TestServers

pytestmark = pytest.mark.slow
PASSWORD = "a long enough password"
IN = "/account/login/"
YEAR = 31_536_000


class Answer(NamedTuple):
    """An answer, read to its end."""

    status: int
    headers: Message
    body: str


@dataclass
class Browser:
    """Asks through a proxy that ended TLS, and keeps the cookies that it is given."""

    port: int
    cookies: dict[str, Morsel[str]] = field(default_factory=dict)

    def ask(self, path: str, form: dict[str, str] | None = None, *, secure: bool = True) -> Answer:
        """GET, or POST of a form."""
        headers = {"Host": "localhost", "Accept": "text/html", "Referer": f"https://localhost{path}"}
        headers |= {"X-Forwarded-Proto": "https"} if secure else {}
        headers |= {"Cookie": "; ".join(f"{name}={one.value}" for name, one in self.cookies.items())}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("POST" if form else "GET", path, urlencode(form or {}) or None, headers)
            answer = connection.getresponse()
            body = answer.read().decode(errors="replace")
        for given in answer.headers.get_all("Set-Cookie") or []:
            for name, cookie in SimpleCookie(given).items():
                self.cookies[name] = cookie
                if str(cookie["max-age"]) == "0":
                    del self.cookies[name]
        return Answer(answer.status, answer.headers, body)

    def sign_in(self, person: Person) -> None:
        """By the form."""
        asked = {"csrfmiddlewaretoken": token(self.ask(IN)), "login": person.email, "password": PASSWORD}
        assert self.ask(IN, asked).status == 302


def token(page: Answer) -> str:
    """What a form proves with that it is ours."""
    found = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page.body)
    assert found is not None, page.body[:500]
    return found[1]


@pytest.fixture(scope="module")
def port(
    servers: TestServers, valkey: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """The house's own web server on the tests' database, told that it stands behind HTTPS."""
    found, log = process_specs.free_port(), Path(tmp_path_factory.mktemp("https")) / "web.log"
    environment = {
        **os.environ, **servers.environment(), "REDIS_URL": valkey.url,
        "INTERLOCK_SECRET_KEY": settings.SECRET_KEY, "INTERLOCK_HTTPS": "1", "INTERLOCK_PORT": str(found),
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }  # fmt: skip
    part = process_specs.build_web_part("127.0.0.1", found, environment)
    command = part.command()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command.argv, cwd=command.folder, env=dict(command.environment), stdout=out, stderr=out
        )
    try:
        until = time.monotonic() + 90
        while not part.ready():
            alive = process.poll() is None and time.monotonic() < until
            assert alive, log.read_text()[-3000:]
            time.sleep(0.05)
        yield found
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def person(house: House) -> Person:
    """Somebody with a password, and nobody's attempts counted."""
    cache.clear()
    found = house.people.operator.person
    found.set_password(PASSWORD)
    found.save(update_fields=["password"])
    return found


@proves("R-SEC-5", part="HSTS, and no page without TLS")
def test_every_answer_binds_the_browser_to_https(port: int, house: House) -> None:
    plain = Browser(port).ask(IN, secure=False)
    assert (plain.status, plain.headers["Location"]) == (301, f"https://localhost{IN}")
    for path in (IN, "/nowhere", "/api/v1/runs", "/static/favicon.svg"):
        said = Browser(port).ask(path).headers["Strict-Transport-Security"]
        assert said == f"max-age={YEAR}; includeSubDomains; preload", path


@proves("R-SEC-5", part="Secure, HttpOnly and SameSite on every cookie")
def test_no_cookie_leaves_https_and_scripts_read_none_that_lets_anybody_in(port: int, person: Person) -> None:
    browser = Browser(port)
    browser.sign_in(person)
    page = browser.ask("/")
    assert page.status == 200
    chosen = {"theme": "dark", "density": "compact", "keys": "off", "zone": "Europe/Vienna"}
    browser.ask("/preferences", {"csrfmiddlewaretoken": token(page), **chosen})
    assert {"sessionid", "csrftoken", *chosen} <= set(browser.cookies)
    for name, cookie in browser.cookies.items():
        assert (cookie["secure"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/"), name
        assert bool(cookie["httponly"]) is (name not in chosen), name


@proves("R-SEC-5", part="signing in begins a session anew")
@proves("W5", part="fixation")
def test_a_session_that_was_planted_before_signing_in_is_worth_nothing_after(
    port: int, person: Person
) -> None:
    planted = SessionStore()
    planted["next"] = "/runs"
    planted.create()
    given = SimpleCookie({"sessionid": str(planted.session_key)})
    victim = Browser(port, dict(given))
    victim.ask(IN)
    secret = victim.cookies["csrftoken"].value
    victim.sign_in(person)
    assert victim.cookies["sessionid"].value != planted.session_key
    assert victim.cookies["csrftoken"].value != secret
    assert victim.ask("/").status == 200
    assert not SessionStore().exists(str(planted.session_key))
    thief = Browser(port, dict(given)).ask("/")
    assert (thief.status, thief.headers["Location"]) == (302, f"{IN}?next=/")
