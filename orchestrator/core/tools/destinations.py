"""The web addresses, databases and mail server that an admin allows a tenant's shipped tools.

An entry of the web list is an address: `https://docs.example/guide` allows that page alone,
`https://docs.example/guide/*` everything below it, and a final `?*` also any query. Hosts are exact: a host
pattern that third parties can extend could carry data away by itself.

Spec: R-TOOL-2, R-TOOL-19, G3.
"""

from collections.abc import Collection, Iterator
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, StringConstraints

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.tools.egress_policy import Target, target_of

MOST_ADDRESSES = 200
ANY_QUERY = "?*"
BELOW = "/*"
LONGEST_ACCOUNT = 254
A_SECRET = r"^[a-z][a-z0-9_-]{0,63}$"  # noqa: S105 - the form of a name
ADDRESS = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"


class WebRules(FrozenModel):
    """The web addresses that tools may read without asking a person."""

    allow: tuple[Annotated[str, StringConstraints(max_length=2_000)], ...] = Field(
        default=(), max_length=MOST_ADDRESSES
    )


class Database(FrozenModel):
    """A PostgreSQL database that tools may query.

    `reader` and `writer` name secrets of the form user:password, stored for its `origin`. Without a writer
    nothing is written. `reader_account` and `writer_account` are the users that the secrets named when this
    was configured; "" means unknown. `tls`: "verified" checks the certificate, "required" accepts any, "off"
    uses none.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    host: str = Field(min_length=1, max_length=253)
    port: int = Field(default=5432, ge=1, le=65_535)
    database: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,63}$")
    reader: str = Field(pattern=A_SECRET)
    writer: str = Field(default="", pattern=rf"^$|{A_SECRET}")
    reader_account: str = Field(default="", max_length=LONGEST_ACCOUNT)
    writer_account: str = Field(default="", max_length=LONGEST_ACCOUNT)
    tls: Literal["verified", "required", "off"] = "verified"

    @property
    def target(self) -> Target:
        """The network target of the database, as the egress policy judges it.

        Raises: EgressRefused.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return target_of(f"http://{host}:{self.port}")

    @property
    def origin(self) -> str:
        """The origin that the database's secrets are stored for."""
        return f"postgresql://{self.target.place}/{self.database}"


class Databases(FrozenModel):
    """The databases of a tenant, each name once."""

    databases: tuple[Database, ...] = Field(default=(), max_length=20)


class MailServer(FrozenModel):
    """The mail server of a tenant, and the sender of its mail.

    `secret` names a secret of the form user:password, stored for its `origin`. Without a host, it is the
    operator's own server, if there is one. `account` is the user that the secret named when this was
    configured; "" means unknown.

    `domains` None: any recipient; else only addresses at these domains.
    """

    host: str = Field(default="", max_length=253)
    port: int = Field(default=587, ge=1, le=65_535)
    tls: Literal["starttls", "implicit", "off"] = "starttls"
    secret: str = Field(default="", pattern=rf"^$|{A_SECRET}")
    account: str = Field(default="", max_length=LONGEST_ACCOUNT)
    sender: str = Field(pattern=ADDRESS, max_length=254)
    name: str = Field(default="", max_length=100, pattern=r"^[^\x00-\x1f\x7f<>\"\\]*$")
    domains: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]{1,253}$")], ...] | None = Field(
        default=None, max_length=100
    )

    @property
    def target(self) -> Target:
        """The network target of the mail server.

        Raises: EgressRefused.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return target_of(f"http://{host}:{self.port}")

    @property
    def origin(self) -> str:
        """The origin that the mail server's secret is stored for."""
        return f"smtp://{self.target.place}"


def account_in(secret: str) -> str:
    """Return the user of a secret of the form user:password, else "".

    A secret of another form returns "", because its user cannot be distinguished from a password.
    """
    user, colon, _ = secret.partition(":")
    return user if colon and len(user) <= LONGEST_ACCOUNT else ""


def another_account(known: str, user: str) -> bool:
    """Return whether a secret names another user now than when its use was approved."""
    return bool(known) and user != known


def entry_of(text: str) -> str:
    """Normalize an entry of the web list.

    Raises: EgressRefused.
    """
    plain, any_query = (text[:-2], ANY_QUERY) if text.endswith(ANY_QUERY) else (text, "")
    target = target_of(plain)
    parts = urlsplit(plain)
    path = parts.path or "/"
    if "?" in plain or "*" in path.removesuffix(BELOW) or not _is_unambiguous_path(path):
        raise EgressRefused(detail="write one address; /* at its end for all below it, then ?* for any query")
    return f"{target.origin}{path}{any_query}"


def is_url_allowed(allow: tuple[str, ...], url: str) -> bool:
    """Return whether a list of entries covers this address.

    An ambiguous address is on no list.
    """
    try:
        origin, parts = target_of(url).origin, urlsplit(url)
    except EgressRefused:
        return False
    path = parts.path or "/"
    return _is_unambiguous_path(path) and any(
        _is_address_covered(entry, origin, path, "?" in url) for entry in allow
    )


def list_allowed_hosts(allow: tuple[str, ...]) -> frozenset[str]:
    """Return the hosts that a list names, without paths, so that the result reveals nothing else."""
    return frozenset(target_of(entry.removesuffix(ANY_QUERY)).host for entry in allow)


def describe_wider_web_rules(before: WebRules, after: WebRules) -> tuple[str, ...]:
    """Describe each new entry that no earlier entry covers, one sentence each.

    An empty result means that the list is no wider.
    """
    return tuple(
        f"It is read without asking: {entry}"
        for entry in after.allow
        if not any(_is_entry_within(entry, other) for other in before.allow)
    )


# Weakness of each TLS mode. How the encryption begins (`implicit`, `starttls`) does not weaken the check.
BARE = {"verified": 0, "implicit": 0, "starttls": 0, "required": 1, "off": 2}


def wider_databases(
    before: Databases, after: Databases, *, operators: Collection[str] = ()
) -> tuple[str, ...]:
    """Describe everything that tools may reach by `after` but not by `before`, one sentence each.

    An empty result means that the list is no wider. `operators` are the names of the operator's own
    databases, which a tenant's database of the same name hides.
    """
    known, kept = {one.name: one for one in before.databases}, {one.name for one in after.databases}
    found = [more for one in after.databases for more in _describe_wider_database(known.get(one.name), one)]
    bared = [name for name in known if name not in kept and name in operators]
    return (*found, *(f"Tools ask the operator's {name} again, which this one hid." for name in bared))


def _describe_wider_database(before: Database | None, after: Database) -> Iterator[str]:
    name, place = after.name, after.origin
    if before is None:
        yield f"Tools ask {name} at {place}, as {_format_account(after.reader_account, after.reader)}."
    elif before.origin != after.origin:
        yield f"{name} is asked at {place}, no longer at {before.origin}."
    if after.writer and (before is None or not before.writer):
        whom = _format_account(after.writer_account, after.writer)
        yield f"Tools change {name} as {whom}, each change with a person's yes."
    if before is None:
        return
    if _is_account_swapped(before.reader, after.reader, before.reader_account, after.reader_account):
        yield f"{name} is asked under another role: {_format_account(after.reader_account, after.reader)}."
    both = after.writer and before.writer
    if both and _is_account_swapped(before.writer, after.writer, before.writer_account, after.writer_account):
        yield f"{name} is changed under another role: {_format_account(after.writer_account, after.writer)}."
    if BARE[after.tls] > BARE[before.tls]:
        yield f"The way to {name} is guarded less: {after.tls}, no longer {before.tls}."


def wider_mail(before: MailServer | None, after: MailServer) -> tuple[str, ...]:
    """Describe each new recipient, route or account of mail, one sentence each.

    An empty result means that the mail settings are no wider.
    """
    return tuple(_wider_mail(before, after))


def _wider_mail(before: MailServer | None, after: MailServer) -> Iterator[str]:
    way = after.origin if after.host else "the operator's server"
    if before is None:
        yield f"Letters are sent, by {way}."
    elif (before.host, before.port) != (after.host, after.port):
        yield f"Letters go by {way}, no longer by {before.origin if before.host else 'that of the operator'}."
    if after.domains is None and (before is None or before.domains is not None):
        yield "Letters go to any recipient."
    known = None if before is None else before.domains
    if after.domains is not None and (before is None or known is not None):
        fresh = sorted(set(after.domains) - set(known or ()))
        if fresh:
            yield f"Letters go to recipients at {', '.join(fresh)}."[:300]
    if before is None:
        return
    if before.host and after.host and BARE[after.tls] > BARE[before.tls]:
        yield f"The way to the mail server is guarded less: {after.tls}, no longer {before.tls}."
    if before.sender != after.sender:
        yield f"Letters are from {after.sender}, no longer from {before.sender}."
    if _is_account_swapped(before.secret, after.secret, before.account, after.account):
        whom = _format_account(after.account, after.secret) if after.secret else "nobody"
        yield f"The mail server is asked under another account: {whom}."


def _is_account_swapped(before: str, after: str, known: str, account: str) -> bool:
    """Return whether another secret is named, or the same secret names another user."""
    return before != after or another_account(known, account)


def _format_account(account: str, secret: str) -> str:
    return account or f"whomever the secret {secret} names"


def _is_entry_within(entry: str, other: str) -> bool:
    inner, outer = entry.removesuffix(ANY_QUERY), other.removesuffix(ANY_QUERY)
    if inner != entry and outer == other:
        return False
    return inner.startswith(outer[:-1]) if outer.endswith(BELOW) else inner == outer


def _is_address_covered(entry: str, origin: str, path: str, asks: bool) -> bool:
    listed = entry.removesuffix(ANY_QUERY)
    if asks and listed == entry:
        return False
    at = f"{origin}{path}"
    return at.startswith(listed[:-1]) if listed.endswith(BELOW) else at == listed


def _is_unambiguous_path(path: str) -> bool:
    """Return whether a path has one reading: no dot segments and no hidden separators, quoted or not."""
    plain = unquote(path)
    hidden = "%2f" in path.lower() or "%" in plain or "\\" in plain or "\0" in plain
    return not hidden and not any(part in (".", "..") for part in plain.split("/"))
