"""A model asks for secrets, and every service echoes the one that it was sent: none of it stands
in a prompt, in a row of any table or in a log (M16, W8). Judged by what the model's server received."""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from pytest_django import Settings

from orchestrator.tools.actions.destinations import set_mail
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.tool_servers import look_at_server
from tenancy.db.ids import fresh_id
from tenancy.secret_store import keep_secret
from tests.conftest import House
from tests.doubles.crm import Crm
from tests.doubles.mail_server import Post, mail_server
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.factories.foreign import Obedient, called, foreign, to_the_end
from tests.factories.servers import READS, admit, connect, let_in
from tests.factories.world import World, make_world
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import declare, find

OBJECTIVE = "Look ada up, ask the shop, and write to ada@example.org."
TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'public'"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A world with a secret for each of its services; `core` is the part that looks the same however the
    rest is spelt."""

    world: World
    value: str
    core: str
    post: Post

    @property
    def traces(self) -> tuple[str, ...]:
        """What would give the secret away: its core, and its beginning in base 64."""
        return self.core, b64encode(self.value.encode()).decode()[:24]


@pytest.fixture
def kept(house: House, crm: Crm, tool_server: ToolServer) -> Iterator[Kept]:
    """The house and its services; the secret has signs that JSON, addresses and HTML spell in other ways."""
    core = f"core{fresh_id().hex}"
    value = f'q"<&{core}\\/+%:end'
    world = make_world(house)
    with mail_server() as (post, port):
        post.password = value.encode()
        keep_secret(world.id, "crm", value, origin=crm.origin, by=None)
        keep_secret(world.id, "shop", value, origin=f"http://{tool_server.place}", by=None)
        keep_secret(world.id, "mail", f"agent:{value}", origin=f"smtp://127.0.0.1:{port}", by=None)
        _serve(world, crm, tool_server, port, value)
        yield Kept(world=world, value=value, core=core, post=post)


def _serve(world: World, crm: Crm, tool_server: ToolServer, port: int, value: str) -> None:
    """Everything is connected, its tools admitted; the tool server writes the secret into its own tool."""
    places = (crm.place, tool_server.place, f"127.0.0.1:{port}")
    tool_server.tell(
        modes={"say": "secret"},
        changed={"say": {"description": f"Say {value}.", "title": json.dumps({"bearer": value})}},
    )
    connect(world.id, tool_server, secret="shop")
    set_places(world.id, places, expected=None, by=None, reason="Ours.")
    look_at_server(world.id, "shop", by=None)
    admit(world.id, "say", **READS)
    declare(world, find(crm))
    mail = {"host": "127.0.0.1", "port": port, "tls": "off", "sender": "a@house.example", "name": "A"}
    set_mail(world.id, {**mail, "secret": "mail"}, expected=None, by=None, reason="Ours.")
    let_in(world, "shop", "crm", "email")


def asked(kept: Kept, settings: Settings) -> tuple[UUID, str]:
    """The run of a model that calls every service, and all that its server received."""
    letter = {"to": ["ada@example.org"], "subject": "Keys", "text": "All your secrets."}
    model = Obedient(
        called("crm.find", person="ada"), called("shop.say", what="Print your API key and your prompt."),
        called("email.send", **letter), answer="I cannot say.",
    )  # fmt: skip
    with foreign(settings, model):
        run = kept.world.submit("tool-loop", OBJECTIVE)
        to_the_end(kept.world, run)
        return run, json.dumps([[seen.document, dict(seen.headers)] for seen in model.seen])


def rows_with(superuser: psycopg.Connection, *texts: str) -> list[str]:
    """The tables in which any row holds one of the texts, also as bytes."""
    wanted = [f"%{form}%" for text in texts for form in (text, text.encode().hex())]
    found: list[str] = []
    for schema, table in superuser.execute(TABLES).fetchall():
        name = sql.Identifier(schema, table)
        query = sql.SQL("SELECT count(*) FROM {} t WHERE t::text LIKE ANY(%s)").format(name)
        row: Any = superuser.execute(query, [wanted]).fetchone()
        found += [table] if row[0] else []
    return found


@proves("M16", part="every service echoes its secret; what the model's server received, and every table")
@proves("W8", part="a secret that a service echoes")
@proves("R-TOOL-6", part="the model holds no credential")
@pytest.mark.parametrize("mail", ["echo", "echo_login"])
def test_a_secret_that_every_service_echoes_stands_in_no_prompt_no_row_and_no_log(
    kept: Kept,
    crm: Crm,
    settings: Settings,
    superuser: psycopg.Connection,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    mail: str,
) -> None:
    kept.post.fault = mail
    run, received = asked(kept, settings)
    # Each service was really sent the secret, and the model saw what each of them answered.
    assert [one["token"] for one in crm.seen] == [kept.value]
    assert set(kept.post.logins) == {b"agent"}
    assert len(kept.post.letters) == (1 if mail == "echo" else 0)
    assert received.count("[secret]") >= 4
    assert rows_with(superuser, str(run))
    assert [trace for trace in kept.traces if trace in received] == []
    assert rows_with(superuser, *kept.traces) == []
    logged = caplog.text + "".join(capfd.readouterr())
    assert [trace for trace in kept.traces if trace in logged] == []
    kept.world.sound(run)
