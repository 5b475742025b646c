"""Submits a message to a mail server, for all of its recipients or none (R-TOOL-19).

SMTP has no idempotency key and no look-up: once the text was sent, only the server's answer shows the
outcome, and without an answer a person has to find out whether the message was sent. The Message-ID is
derived from the call's key, so that a person can find the message.
"""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from email.utils import format_datetime

import aiosmtplib
from django.conf import settings

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.destinations import MailServer, another_account
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.tools.gateways.egress.guarded_transport import operators_leave, resolve_allowed_addresses
from orchestrator.tools.gateways.egress.service_client import CONNECT_SECONDS, CallFailed, ToolContext
from orchestrator.tools.gateways.secret_redaction import without_secret
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.queries.destinations import mail_server
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import SecretUnusable
from tenancy.secret_store import reveal_secret

BACKEND = "django.core.mail.backends.smtp.EmailBackend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message: recipients as plain addresses, a one-line subject, a text."""

    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    text: str
    reply_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A mail server with its login, and the sender of the messages."""

    server: MailServer
    user: str
    password: str
    leave: EgressPolicy


async def mail_post(context: ToolContext) -> Post:
    """Return the tenant's mail server and login.

    Raises: CallFailed where there is none.
    """
    return await in_house(context, lambda: _resolve_mail_server(context))


def build_mail_message(letter: Letter, server: MailServer, *, key: str, at: datetime) -> EmailMessage:
    """Build the message as it is sent; the same key gives the same Message-ID.

    Raises: CallFailed for values that are invalid in a header.
    """
    message = EmailMessage(policy=WIRE)
    try:
        message["From"] = Address(display_name=server.name, addr_spec=server.sender)
        message["To"] = ", ".join(letter.to)
        if letter.cc:
            message["Cc"] = ", ".join(letter.cc)
        if letter.reply_to:
            message["Reply-To"] = letter.reply_to
        message["Subject"] = letter.subject
        message["Message-ID"] = message_id(key, server)
        message["Date"] = format_datetime(at)
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(letter.text)
    except (ValueError, MessageError) as error:
        raise _build_refusal(f"the letter cannot be written: {error}") from None
    return message


def message_id(key: str, server: MailServer) -> str:
    """Return the Message-ID of the message with this key."""
    return f"<{key}@{server.sender.rpartition('@')[2]}>"


async def send_letter(context: ToolContext, letter: Letter, message: EmailMessage, post: Post) -> str:
    """Send the message and return the server's answer. Login data is removed from answers and failures.

    Raises: CallFailed.
    """
    try:
        answer = await _given_up(context, letter, message, post)
    except CallFailed as failure:
        failure.detail = _without_login(failure.detail, post)
        raise
    return _without_login(answer.encode("utf-8", "backslashreplace"), post).decode()


def _without_login(said: bytes, post: Post) -> bytes:
    """Remove the password, and the login line that is sent to a server (RFC 4616)."""
    line = f"\0{post.user}\0{post.password}" if post.password else ""
    return without_secret(without_secret(said, line, cut=True), post.password, cut=True)


async def _given_up(context: ToolContext, letter: Letter, message: EmailMessage, post: Post) -> str:
    _within_domains(letter, post.server)
    client = await _open_mail_session(context, post)
    try:
        await client.mail(post.server.sender)
        for address in (*letter.to, *letter.cc):
            # One refused recipient refuses the message: what was approved goes to all recipients or to
            # none.
            await client.rcpt(address)
        context.watch.sent = True
        answer = await client.data(message.as_bytes())
        return answer.message[:300]
    except aiosmtplib.SMTPResponseException as error:
        raise _build_refusal(f"{error.code} {error.message}", sent=False) from None
    except aiosmtplib.SMTPTimeoutError:
        raise CallFailed("timeout", sent=context.watch.sent, detail=b"the mail server is silent") from None
    except (aiosmtplib.SMTPException, OSError) as error:
        word = "crashed" if context.watch.sent else "unreachable"
        raise CallFailed(word, sent=context.watch.sent, detail=_format_error(error)) from None
    finally:
        client.close()


async def _open_mail_session(context: ToolContext, post: Post) -> aiosmtplib.SMTP:
    """Open a session with the server at a checked address, under its own name's certificate.

    Raises: CallFailed.
    """
    server, seconds = post.server, min(CONNECT_SECONDS, context.seconds)
    target = server.target
    try:
        addresses = await resolve_allowed_addresses(target, post.leave)
    except EgressRefused as error:
        raise _build_refusal(str(error.data["detail"])) from None
    try:
        link = await _connect_socket(addresses[0], target.port, seconds)
        client = aiosmtplib.SMTP(
            hostname=target.host, sock=link, timeout=context.seconds, use_tls=server.tls == "implicit",
            start_tls=server.tls == "starttls", tls_context=ssl.create_default_context(),
            local_hostname="localhost", username=post.user or None, password=post.password or None,
        )  # fmt: skip
        await client.connect()
    except aiosmtplib.SMTPResponseException as error:
        raise _build_refusal(f"{error.code} {error.message}") from None
    except (aiosmtplib.SMTPException, OSError) as error:
        raise CallFailed("unreachable", sent=False, transient=True, detail=_format_error(error)) from None
    return client


async def _connect_socket(address: str, port: int, seconds: float) -> socket.socket:
    loop = asyncio.get_running_loop()
    link = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    link.setblocking(False)
    try:
        async with asyncio.timeout(seconds):
            await loop.sock_connect(link, (address, port))
    except BaseException:
        link.close()
        raise
    return link


def no_mail_server() -> str:
    """Return why no mail can be sent; empty where it can. Call it inside the tenant's context."""
    server = mail_server()
    if server is None:
        return "no administrator has said from whom letters are"
    own = settings.EMAIL_BACKEND == BACKEND and bool(settings.EMAIL_HOST)
    return "" if server.host or own else "neither the tenant nor the operator names a mail server"


def _resolve_mail_server(context: ToolContext) -> Post:
    """Return the mail server and login. Call it inside the tenant's context.

    Raises: CallFailed.
    """
    server = mail_server()
    if server is None or context.tenant is None:
        raise _build_refusal("no admin has said from whom letters are")
    if not server.host:
        return _resolve_operator_mail_server(server)
    user = password = ""
    if server.secret:
        try:
            user, _, password = reveal_secret(context.tenant, server.secret, server.origin).partition(":")
        except SecretUnusable as unusable:
            raise _build_refusal(str(unusable)) from None
    if another_account(server.account, user):
        raise _build_refusal(
            f"the secret {server.secret} names another user than was agreed to for letters; an administrator "
            "has to name the mail server anew"
        )
    return Post(server=server, user=user, password=password, leave=leave_for(server.target.origin))


def _resolve_operator_mail_server(server: MailServer) -> Post:
    """Return the mail server of the operator's settings, which may be private; the sender is the tenant's."""
    if settings.EMAIL_BACKEND != BACKEND or not settings.EMAIL_HOST:
        raise _build_refusal("there is no mail server: neither the tenant nor the operator names one")
    found = server.evolve(
        host=settings.EMAIL_HOST, port=settings.EMAIL_PORT,
        tls="starttls" if settings.EMAIL_USE_TLS else "implicit" if settings.EMAIL_USE_SSL else "off",
    )  # fmt: skip
    return Post(
        server=found, user=settings.EMAIL_HOST_USER or "", password=settings.EMAIL_HOST_PASSWORD or "",
        leave=operators_leave(found.target.origin),
    )  # fmt: skip


def _within_domains(letter: Letter, server: MailServer) -> None:
    """Check that every recipient is in a domain that the tenant allows.

    Raises: CallFailed.
    """
    if server.domains is None:
        return
    for address in (*letter.to, *letter.cc):
        if address.rpartition("@")[2].lower() not in server.domains:
            raise _build_refusal(f"{address} is at none of the domains that letters go to")


def _format_error(error: Exception) -> bytes:
    return f"{type(error).__name__}: {error}"[:500].encode("utf-8", "backslashreplace")


def _build_refusal(why: str, *, sent: bool = False) -> CallFailed:
    return CallFailed("refused", sent=sent, detail=why[:500].encode("utf-8", "backslashreplace"))
