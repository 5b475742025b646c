"""Where a tenant's shipped tools may go: web addresses, databases, a mail server, as an admin lists them
(R-TOOL-2, R-TOOL-19, G3).

An entry of the web list is an address: `https://docs.example/guide` that page alone,
`https://docs.example/guide/*` all below it, with `?*` at its end any query too. Hosts are exact: a name that
anybody may extend could carry data away by itself.
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
    """A PostgreSQL database that tools may ask. `reader` and `writer` name secrets of the form user:password,
    kept for its `origin`; without a writer nothing is written. `reader_account` and `writer_account` are the
    users that those named as this was said; "" is not known. `tls`: with a certificate that is checked, any,
    or none.
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
        """Where it is, as the way out judges it. Raises EgressRefused."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return target_of(f"http://{host}:{self.port}")

    @property
    def origin(self) -> str:
        """What its secrets are kept for."""
        return f"postgresql://{self.target.place}/{self.database}"


class Databases(FrozenModel):
    """The databases of a tenant, each name once."""

    databases: tuple[Database, ...] = Field(default=(), max_length=20)


class MailServer(FrozenModel):
    """Where the tenant's letters are given up, and from whom they are. `secret` names one of the form
    user:password, kept for its `origin`; without a host it is the operator's own server, if there is one.
    `account` is the user that it named as this was said; "" is not known.

    `domains` None: any recipient; else only addresses at these.
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
        """Where it is. Raises EgressRefused."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return target_of(f"http://{host}:{self.port}")

    @property
    def origin(self) -> str:
        """What its secret is kept for."""
        return f"smtp://{self.target.place}"


def account_in(secret: str) -> str:
    """The user of a secret user:password; "" for one of another form, which is not told apart from a
    password."""
    user, colon, _ = secret.partition(":")
    return user if colon and len(user) <= LONGEST_ACCOUNT else ""


def another_account(known: str, user: str) -> bool:
    """Whether a secret names somebody else today than when its use was agreed to."""
    return bool(known) and user != known


def entry_of(text: str) -> str:
    """An entry of the web list in its one form. Raises EgressRefused."""
    plain, any_query = (text[:-2], ANY_QUERY) if text.endswith(ANY_QUERY) else (text, "")
    target = target_of(plain)
    parts = urlsplit(plain)
    path = parts.path or "/"
    if "?" in plain or "*" in path.removesuffix(BELOW) or not _is_unambiguous_path(path):
        raise EgressRefused(detail="write one address; /* at its end for all below it, then ?* for any query")
    return f"{target.origin}{path}{any_query}"


def is_url_allowed(allow: tuple[str, ...], url: str) -> bool:
    """Whether a list of entries has this address. What could be read in two ways is on no list."""
    try:
        origin, parts = target_of(url).origin, urlsplit(url)
    except EgressRefused:
        return False
    path = parts.path or "/"
    return _is_unambiguous_path(path) and any(
        _is_address_covered(entry, origin, path, "?" in url) for entry in allow
    )


def list_allowed_hosts(allow: tuple[str, ...]) -> frozenset[str]:
    """The hosts that a list names: whoever is given one alone learns nothing else."""
    return frozenset(target_of(entry.removesuffix(ANY_QUERY)).host for entry in allow)


def describe_wider_web_rules(before: WebRules, after: WebRules) -> tuple[str, ...]:
    """What a list has that no entry of the one before it covers, a sentence each; none: it is as narrow."""
    return tuple(
        f"It is read without asking: {entry}"
        for entry in after.allow
        if not any(_is_entry_within(entry, other) for other in before.allow)
    )


# How little each way is guarded; what has to be encrypted is not checked less for how that begins.
BARE = {"verified": 0, "implicit": 0, "starttls": 0, "required": 1, "off": 2}


def wider_databases(
    before: Databases, after: Databases, *, operators: Collection[str] = ()
) -> tuple[str, ...]:
    """What tools may reach by a list of databases that they may not by the one before it, a sentence each;
    none: it is as narrow. `operators` are the names of the operator's own, which one of the tenant hides."""
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
    """To whom and by which way letters may go that could not before, a sentence each; none: it is as
    narrow."""
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
    """Whether another secret is named, or the same one for somebody else."""
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
    """Whether a path leads where it says: no way up, no hidden separator, quoted or not."""
    plain = unquote(path)
    hidden = "%2f" in path.lower() or "%" in plain or "\\" in plain or "\0" in plain
    return not hidden and not any(part in (".", "..") for part in plain.split("/"))
