"""email.draft and email.send against a real mail server: once, to all or to nobody, honest when in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb
from pytest_django import Settings

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.domain.run_events import ToolAnswered
from orchestrator.core.tools.destinations import MailServer
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.monotonic_clock import wall_now
from orchestrator.tools.actions.destinations import set_mail
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.egress.smtp import Letter, build_mail_message, message_id
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.models.destinations import MailDraft
from tenancy.core.errors import InvalidInput
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import keep_secret
from tests.conftest import House
from tests.doors.gateways.effects import TIMEOUT_MS, Told
from tests.doors.gateways.houses import use_in_house
from tests.doubles.mail_server import Post, mail_server
from tests.proves import proves
from tests.servers import TestServers

LETTER: dict[str, Any] = {
    "to": ["ada@example.org", "bob@example.org"], "cc": ["carl@example.com"], "subject": "Grüße – your order",
    "text": "Dear Ada,\n.\nIt is done. " + "x" * 1200 + "\n",
}  # fmt: skip
SERVER = MailServer(host="mail.example", sender="agent@house.example", name="The House")


class Sender:
    """A house with a mail server."""

    def __init__(self, loop: EffectLoop, house: House, post: Post, port: int) -> None:
        self.loop, self.id, self.post, self.port = loop, house.tenant.id, post, port
        set_places(self.id, (f"127.0.0.1:{port}",), expected=None, by=None, reason="Ours.")
        self.server()

    def server(self, **more: Any) -> None:
        """What the admin says of it."""
        given = {
            "host": "127.0.0.1", "port": self.port, "tls": "off", "sender": "agent@house.example",
            "name": "The House", **more,
        }  # fmt: skip
        set_mail(self.id, given, expected=None, by=None, reason="Ours.")

    def send(self, key: str = "key-1", **changes: Any) -> Told:
        """email.send."""
        timeout_ms = changes.pop("timeout_ms", TIMEOUT_MS)
        arguments = {**LETTER, **changes}
        return use_in_house(self.loop, self.id, "email.send", arguments, key=key, timeout_ms=timeout_ms)

    def draft(self, key: str, **changes: Any) -> Told:
        """email.draft."""
        return use_in_house(self.loop, self.id, "email.draft", {**LETTER, **changes}, key=key)


@pytest.fixture
def mail() -> Iterator[tuple[Post, int]]:
    """A mail server on loopback."""
    with mail_server() as found:
        yield found


@pytest.fixture
def sender(loop: EffectLoop, house: House, mail: tuple[Post, int]) -> Sender:
    """The house."""
    return Sender(loop, house, *mail)


@proves("R-TOOL-19", part="e-mail send")
def test_a_letter_arrives_once_as_it_was_approved(sender: Sender) -> None:
    told = sender.send()
    assert isinstance(told.event, ToolAnswered)
    result = told.document(told.event.observation)
    assert validate_against_schema(shipped_tools()["email.send"].spec.output_schema, result) is None
    ((envelope, letter),) = sender.post.letters
    assert envelope.rcpt_tos == [*LETTER["to"], *LETTER["cc"]]
    assert envelope.mail_from == "agent@house.example"
    assert letter["subject"] == LETTER["subject"]
    assert letter["from"] == "The House <agent@house.example>"
    assert letter.get_content().replace("\r\n", "\n") == LETTER["text"]
    assert letter["message-id"] == result["message_id"] == "<key-1@house.example>"


@proves("R-TOOL-9", part="a letter without an answer is in doubt")
@pytest.mark.parametrize(("fault", "error"), [("hang", "timeout"), ("cut", "crashed")])
def test_a_letter_without_an_answer_may_have_gone_out(sender: Sender, fault: str, error: str) -> None:
    sender.post.fault = fault
    # How long a letter is on its way to a server is the machine's: each time it is given more.
    for timeout_ms in (900, 9_000, TIMEOUT_MS):
        told = sender.send(timeout_ms=timeout_ms)
        if sender.post.letters:
            break
    assert (told.event.error, told.event.sent, len(sender.post.letters)) == (error, True, 1)
    spec = shipped_tools()["email.send"].spec
    assert (spec.honours_keys, spec.lookup, spec.max_retries) == (False, False, 0)


@proves("R-TOOL-19", part="to all recipients or to none")
def test_a_refused_recipient_refuses_the_letter(sender: Sender) -> None:
    sender.post.refuse = "carl@example.com"
    told = sender.send()
    assert (told.event.error, told.event.sent, sender.post.letters) == ("refused", False, [])


def test_a_letter_that_the_server_refuses_was_not_sent(sender: Sender) -> None:
    sender.post.fault = "refuse"
    told = sender.send()
    assert (told.event.error, told.event.transient, sender.post.letters) == ("refused", False, [])


@proves("R-TOOL-19", part="recipients within the admin's domains")
def test_letters_go_to_the_domains_that_an_admin_has_named(sender: Sender) -> None:
    sender.server(domains=["example.org"])
    assert sender.send().event.error == "refused"
    assert isinstance(sender.send(cc=["x@EXAMPLE.org"]).event, ToolAnswered)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "a\nBcc: eve@example.org"}, {"subject": "a\rb"}, {"subject": "a\u2028b"},
        {"to": ["a@example.org\nBcc: eve@example.org"]}, {"to": ["a@example.org, eve@example.org"]},
        {"to": ["<a@example.org>"]}, {"to": ['"a b"@example.org']}, {"to": ["a@example.org>"]}, {"to": []},
        {"cc": ["@example.org"]}, {"to": ["ä@example.org"]}, {"text": "a\x00b"}, {"bcc": ["eve@example.org"]},
    ],
)  # fmt: skip
@proves("R-TOOL-19", part="no header can be injected")
def test_what_would_be_a_header_or_another_recipient_is_refused(change: dict[str, Any]) -> None:
    assert (
        validate_against_schema(shipped_tools()["email.send"].spec.input_schema, {**LETTER, **change})
        is not None
    )


def test_a_subject_that_came_past_the_schema_writes_no_header() -> None:
    letter = Letter(to=("a@example.org",), cc=(), subject="a\r\nBcc: eve@example.org", text="x")
    with pytest.raises(CallFailed):
        build_mail_message(letter, SERVER, key="k", at=wall_now())


def test_one_key_is_one_message_id() -> None:
    assert message_id("k", SERVER) == message_id("k", SERVER) != message_id("l", SERVER)


@proves("R-TOOL-19", part="e-mail draft")
def test_a_draft_is_kept_once_a_key_and_sends_nothing(sender: Sender) -> None:
    key = str(uuid4())
    first, again = sender.draft(key), sender.draft(key)
    assert isinstance(first.event, ToolAnswered)
    result = first.document(first.event.observation)
    assert result == again.document(again.event.observation)
    with tenant_transaction(sender.id):
        assert [str(row.id) for row in MailDraft.objects.all()] == [result["id"]]
    assert sender.draft(key, text="Other.").event.error == "crashed"
    assert sender.post.letters == []


@proves("R-TOOL-12", part="a draft is read back")
@pytest.mark.parametrize("change", [{"cc": []}, {"text": "Other."}])
def test_a_draft_that_is_kept_as_another_letter_is_no_result(
    sender: Sender, servers: TestServers, change: dict[str, Any]
) -> None:
    key = str(uuid4())
    assert isinstance(sender.draft(key).event, ToolAnswered)
    with servers.superuser() as connection:
        # As if the table's own guards had failed.
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE orchestrator_maildraft SET body = body || %s WHERE tenant_id = %s",
            (Jsonb(change), sender.id),
        )
    told = sender.draft(key)
    assert (told.event.error, told.event.sent) == ("malformed", True)


def test_a_letter_that_left_is_observed_and_not_verified_by_our_own_words() -> None:
    assert shipped_tools()["email.send"].spec.verifier is None


def test_a_letter_that_is_sent_as_a_draft_says_what_the_draft_says(sender: Sender) -> None:
    told = sender.draft(str(uuid4()))
    draft = told.document(told.event.observation)["id"]
    assert sender.send(draft=draft, text="Something else.").event.error == "refused"
    assert sender.send(draft=str(uuid4())).event.error == "refused"
    assert isinstance(sender.send(draft=draft).event, ToolAnswered)
    assert len(sender.post.letters) == 1


@proves("R-SEC-4", part="a mail server's password")
def test_the_password_is_sealed_and_sent_to_its_own_server(sender: Sender) -> None:
    sender.server(secret="mail")
    assert sender.send().event.error == "refused"
    keep_secret(sender.id, "mail", "agent:wrong", origin=f"smtp://127.0.0.1:{sender.port}", by=None)
    assert sender.send().event.error == "refused"
    keep_secret(sender.id, "mail", "agent:s3cret", origin=f"smtp://127.0.0.1:{sender.port}", by=None)
    told = sender.send()
    assert isinstance(told.event, ToolAnswered)
    assert b"agent" in sender.post.logins
    assert "s3cret" not in str(told.bodies)
    sender.server(secret="mail")
    keep_secret(sender.id, "mail", "chief:s3cret", origin=f"smtp://127.0.0.1:{sender.port}", by=None)
    told = sender.send()
    assert "another user" in told.text(told.event.detail)
    assert b"chief" not in sender.post.logins


@proves("P8", part="a mail server at a private address")
def test_a_private_mail_server_is_reached_only_where_an_admin_allows_it(sender: Sender) -> None:
    set_places(sender.id, (), expected=None, by=None, reason="Not any more.")
    told = sender.send()
    assert (told.event.error, told.event.sent, sender.post.letters) == ("refused", False, [])


@pytest.mark.parametrize(
    "change",
    [{"host": "169.254.169.254"}, {"sender": "a@b\nc"}, {"name": 'a"b'}, {"tls": "none"}, {"password": "x"},
     {"host": "mail.example", "tls": "off", "secret": "mail"}],
)  # fmt: skip
def test_a_mail_server_is_checked_when_it_is_saved(sender: Sender, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        sender.server(**change)


def test_a_server_that_cannot_be_trusted_gets_no_letter(sender: Sender) -> None:
    for tls in ("starttls", "implicit"):
        sender.server(tls=tls)
        told = sender.send(timeout_ms=2_000)
        assert (told.event.sent, sender.post.letters) == (False, [])


def test_the_operators_server_serves_a_tenant_that_names_none(sender: Sender, settings: Settings) -> None:
    sender.server(host="", port=587)
    assert sender.send().event.error == "refused"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sender.port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    assert isinstance(sender.send().event, ToolAnswered)


def test_a_house_that_has_named_no_sender_sends_nothing(loop: EffectLoop, house: House) -> None:
    told = use_in_house(loop, house.tenant.id, "email.send", LETTER)
    assert (told.event.error, told.event.sent) == ("refused", False)
