"""Where a tenant's shipped tools may go: web addresses, as an admin lists them (R-TOOL-2, R-TOOL-19, G3).

An entry of the web list is an address: `https://docs.example/guide` that page alone, `https://docs.example/guide/*`
all below it, with `?*` at its end any query too. Hosts are exact: a name that anybody may extend could carry
data away by itself.
"""

from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import Field, StringConstraints

from orchestrator.core.egress import target_of
from orchestrator.core.errors import EgressRefused
from orchestrator.core.value import Value

MOST_ADDRESSES = 200
ANY_QUERY = "?*"
BELOW = "/*"


class WebRules(Value):
    """The web addresses that tools may read without asking a person."""

    allow: tuple[Annotated[str, StringConstraints(max_length=2_000)], ...] = Field(
        default=(), max_length=MOST_ADDRESSES
    )


def entry_of(text: str) -> str:
    """An entry of the web list in its one form. Raises EgressRefused."""
    plain, any_query = (text[:-2], ANY_QUERY) if text.endswith(ANY_QUERY) else (text, "")
    target = target_of(plain)
    parts = urlsplit(plain)
    path = parts.path or "/"
    if "?" in plain or "*" in path.removesuffix(BELOW) or not _straight(path):
        raise EgressRefused(detail="write one address; /* at its end for all below it, then ?* for any query")
    return f"{target.origin}{path}{any_query}"


def admits(allow: tuple[str, ...], url: str) -> bool:
    """Whether a list of entries has this address. What could be read in two ways is on no list."""
    try:
        origin, parts = target_of(url).origin, urlsplit(url)
    except EgressRefused:
        return False
    path = parts.path or "/"
    return _straight(path) and any(_covers(entry, origin, path, "?" in url) for entry in allow)


def _covers(entry: str, origin: str, path: str, asks: bool) -> bool:
    listed = entry.removesuffix(ANY_QUERY)
    if asks and listed == entry:
        return False
    at = f"{origin}{path}"
    return at.startswith(listed[:-1]) if listed.endswith(BELOW) else at == listed


def _straight(path: str) -> bool:
    """Whether a path leads where it says: no way up, no hidden separator, quoted or not."""
    plain = unquote(path)
    hidden = "%2f" in path.lower() or "%" in plain or "\\" in plain or "\0" in plain
    return not hidden and not any(part in (".", "..") for part in plain.split("/"))
