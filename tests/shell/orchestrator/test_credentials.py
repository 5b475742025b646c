"""A credential that runs out: renewed by its own way, or the run pauses with the reason (R-TOOL-13)."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import orjson
import psycopg
import pytest
from pytest_django import Settings

from orchestrator.core.tools.registration import asked_declaration
from orchestrator.runs.actions.run_signals import resume
from orchestrator.tools.actions.credentials import keep_credential
from orchestrator.tools.actions.http_tools import declare_http_tool
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.core.errors import InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import Renewal, secrets_of
from tests.conftest import House
from tests.factories.foreign import Obedient, called, foreign, onwards
from tests.factories.servers import CHANGES, READS, let_in
from tests.factories.world import World, make_world
from tests.proves import proves

PERSON = {"type": "string", "maxLength": 200}


class Guarded:
    """A service that lets one token in, and a token endpoint beside it."""

    def __init__(self) -> None:
        self.token, self.issued, self.seen = "first", 0, 0
        self.forms: list[dict[str, list[str]]] = []
        self.generous = True
        self.changes = 0
        guarded = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                guarded.seen += 1
                let_in = self.headers["authorization"] == f"Bearer {guarded.token}"
                self._say(200 if let_in else 401, {"email": "ada@example.org"} if let_in else {})

            def do_PUT(self) -> None:
                guarded.changes += 1
                let_in = self.headers["authorization"] == f"Bearer {guarded.token}"
                self.rfile.read(int(self.headers["content-length"] or 0))
                self._say(200 if let_in else 403, {"changes": guarded.changes})

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                guarded.forms.append(form | {"basic": [self.headers["authorization"]]})
                guarded.issued += 1
                guarded.token = f"fresh-{guarded.issued}"
                told = {"access_token": guarded.token, "expires_in": 600, "refresh_token": "r9"}
                self._say(200 if guarded.generous else 400, told if guarded.generous else {})

            def _say(self, status: int, document: Any) -> None:
                body = orjson.dumps(document)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_address[1]}"
        self.origin = f"http://{self.place}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service() -> Iterator[Guarded]:
    found = Guarded()
    yield found
    found.close()


@pytest.fixture
def world(house: House, service: Guarded) -> World:
    """A furnished house with a tool that needs the service's token."""
    found = make_world(house)
    set_places(found.id, (service.place,), expected=None, by=None, reason="Ours.")
    keep(found, service)
    given = {
        "name": "crm.find", "description": "Find a person.", **READS,
        "input_schema": {"type": "object", "properties": {"person": PERSON}, "required": ["person"]},
        "request": {"method": "GET", "url": f"{service.origin}/people/{{person}}", "secret": "crm"},
    }  # fmt: skip
    declare_http_tool(found.id, asked_declaration(given), by=None, reason="We need it.")
    let_in(found, "crm")
    return found


def keep(
    world: World, service: Guarded, *, minutes: int | None = None, renewed: bool = False, **more: str
) -> None:
    with tenant_transaction(world.id):
        now = database_now()
    renewal = Renewal(url=f"{service.origin}/token", client_id="me", client_secret="s3cret", **more)
    keep_credential(
        world.id, "crm", service.token, origin=service.origin, by=None, reason="Kept.",
        expires_at=None if minutes is None else now + timedelta(minutes=minutes),
        renewal=renewal if renewed else None,
    )  # fmt: skip


def lapse(world: World, superuser: psycopg.Connection) -> None:
    """Time passes for the secret."""
    superuser.execute(
        "UPDATE tenancy_secret SET expires_at = now() WHERE tenant_id = %s AND name = 'crm'", [world.id]
    )


def asking(world: World, settings: Settings, *people: str) -> UUID:
    with foreign(settings, Obedient(*(called("crm.find", person=person) for person in people))):
        run = world.submit("tool-loop", "Find them.")
        world.drive(run)
        if world.run(run).status != "paused":
            onwards(world, run)
    return run


@proves("R-TOOL-13", part="renewed by its configured path")
@pytest.mark.parametrize("refresh", ["", "r0"])
def test_a_token_that_is_turned_away_is_renewed_and_the_call_made(
    world: World, service: Guarded, settings: Settings, refresh: str
) -> None:
    keep(world, service, minutes=30, renewed=True, refresh_token=refresh)
    service.token = "changed"
    run = asking(world, settings, "ada")
    assert world.run(run).terminal_code == "SUCCESS"
    (form,) = service.forms
    assert form["grant_type"] == (["refresh_token"] if refresh else ["client_credentials"])
    assert service.seen == 2
    (kept,) = secrets_of(world.id)
    assert kept.renews_at.endswith("/token")
    assert "s3cret" not in str(world.result(run)) + str(world.said(run, "call_observed"))
    world.sound(run)


@proves("R-TOOL-13", part="its life is checked before the call")
def test_a_token_that_would_not_outlast_the_call_is_renewed_first(
    world: World, service: Guarded, settings: Settings, superuser: psycopg.Connection
) -> None:
    keep(world, service, minutes=30, renewed=True)
    lapse(world, superuser)
    assert world.run(asking(world, settings, "ada")).terminal_code == "SUCCESS"
    assert (len(service.forms), service.seen) == (1, 1)


@proves("R-TOOL-13", part="else the run pauses with the reason")
def test_without_a_way_to_renew_it_the_run_pauses_until_it_is_kept_anew(
    world: World, service: Guarded, settings: Settings, superuser: psycopg.Connection
) -> None:
    keep(world, service, minutes=30, renewed=True)
    lapse(world, superuser)
    service.generous = False
    run = asking(world, settings, "ada")
    assert (world.run(run).status, service.seen) == ("paused", 0)
    assert world.said(run, "run_paused")[-1]["reason"] == "credential_expired:crm.find"
    keep(world, service)
    with foreign(settings, Obedient(called("crm.find", person="ada"))):
        resume(world.id, run, by=world.people.operator.id, reason="Kept anew.")
        world.drive(run)
    assert (service.seen, world.said(run, "call_observed")[-1]["status"]) == (1, "ok")
    world.sound(run)


@proves("R-TOOL-10", part="renewing does not repeat a change")
@proves("R-TOOL-13", part="what is turned away is sent again only where that is safe")
@pytest.mark.parametrize(("recovery", "changes"), [("none", 1), ("keys", 2)], ids=["unkeyed", "keyed"])
def test_a_change_that_is_turned_away_is_sent_again_under_its_key_alone(
    world: World, service: Guarded, settings: Settings, recovery: str, changes: int
) -> None:
    keep(world, service, minutes=30, renewed=True)
    service.token = "changed"
    given = {
        "name": "crm.move", "description": "Move a person.", **CHANGES, "recovery": recovery,
        "input_schema": {"type": "object", "properties": {"person": PERSON}, "required": ["person"]},
        "request": {"method": "PUT", "url": f"{service.origin}/people/{{person}}", "secret": "crm"},
    }  # fmt: skip
    declare_http_tool(world.id, asked_declaration(given), by=None, reason="We need it.")
    let_in(world, "crm")
    with foreign(settings, Obedient(called("crm.move", person="ada"))):
        run = world.submit("tool-loop", "Move her.")
        onwards(world, run)
        world.decide(world.open_requests(run)[0], world.people.approver)
        onwards(world, run)
    assert (service.changes, len(service.forms)) == (changes, 1)
    # A status that is given before anything is done leaves nothing to ask.
    assert [one["request_kind"] for one in world.said(run, "approval_requested")] == ["action"]
    assert "effect_left_open" not in world.kinds(run)
    world.sound(run)


def test_a_life_that_is_over_or_never_ends_and_is_renewed_is_refused(world: World, service: Guarded) -> None:
    with pytest.raises(InvalidInput):
        keep(world, service, minutes=-1)
    with pytest.raises(InvalidInput):
        keep(world, service, renewed=True)
