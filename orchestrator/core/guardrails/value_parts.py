"""Split a value into the parts that can carry something: identifiers, hosts, pieces of an address."""

from urllib.parse import urlsplit

from orchestrator.core.policy.provenance.value_kinds import EMAIL, URL, Kind, things_in

LONGEST_SEARCHED = 100_000


MOST_THINGS = 40


def extract_identifiers(text: str) -> list[str]:
    """The addresses, accounts and numbers that a text holds."""
    found = things_in(text[:LONGEST_SEARCHED])
    named = (*found.recipients, *found.accounts, *found.urls, *found.references)
    return list(dict.fromkeys(named))[: MOST_THINGS + 1]


def split_value_parts(kind: Kind, text: str) -> list[str]:
    if kind == "url" or URL.match(text):
        return [part for part in (parse_url_host(text), *list_payload_parts(text)) if part]
    if (found := EMAIL.search(text)) is not None:
        return [part for part in (*found[0].split("@"), EMAIL.sub("", text).strip(" <>\"',;")) if part]
    return []


def parse_url_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return url


def list_payload_parts(url: str) -> list[str]:
    """The parts of an address that can carry something: labels of its host, its path, its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    rest = f"{parts.path}/{parts.query}/{parts.fragment}/{parts.username or ''}/{parts.password or ''}"
    labels = (parts.hostname or "").split(".")[:-2]
    pieces = rest.replace("&", "/").replace("=", "/").replace(";", "/").split("/")
    return [piece for piece in (*labels, *pieces) if piece][: MOST_THINGS + 1]
