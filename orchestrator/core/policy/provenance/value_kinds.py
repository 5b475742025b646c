"""Kinds of values, such as recipient, account, address, path or amount (R-TOOL-17).

The shape of a value takes precedence over the name of its argument, because an untrusted party may have
named the arguments.
"""

import re
from decimal import Decimal
from posixpath import normpath
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from orchestrator.core.policy.provenance.normalization import normalize_text

Kind = Literal["recipient", "account", "url", "command", "path", "amount", "reference", "text", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)

EMAIL = re.compile(r"(?<![\w.+%'-])[^\W_][\w.+%'-]{0,63}@(?:[\w-]{1,63}\.){1,8}[\w-]{2,24}")
URL = re.compile(r"(?:\b(?:https?|ftp|wss?)://|\bwww\.)[^\s\"'<>)\]}]{1,2000}", re.IGNORECASE)
IBAN = re.compile(r"\b[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?\b", re.ASCII)
PHONE = re.compile(r"(?<![\w.])\+[0-9][0-9 ()./-]{5,18}[0-9](?!\w)")
PATH = re.compile(
    r"(?<![\w/:@.])(?:~|\.{1,2})?(?:/[\w.@%+-]{1,100}){1,20}/?|(?<![\w/:@.])[\w-]{1,60}(?:/[\w.-]{1,60}){1,20}"
)
REFERENCE = re.compile(r"(?<![\w.@/-])[A-Za-z]{1,12}[-_]?[0-9][\w-]{0,40}(?![\w@])", re.ASCII)
NUMBER = re.compile(
    r"(?<![\w.,-])-?[0-9]{1,18}(?:[.,' \u00a0\u2019\u202f][0-9]{3})*(?:[.,][0-9]{1,12})?(?![\w])"
)
DOMAIN = re.compile(r"(?<![\w@./-])(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,6}[A-Za-z]{2,24}(?![\w@])")
_FILES = re.compile(
    r"(?:[ch]|cpp|css|csv|docx?|gif|go|gz|html?|ini|java|jpe?g|js|json|log|md|mov|pdf|php|png|pptx?|py|rb|rs|sh"
    r"|sql|svg|tar|toml|tsx?|tsv|txt|xlsx?|xml|ya?ml|zip)",
    re.IGNORECASE,
)
_SAID: tuple[tuple[Kind, str], ...] = (
    (
        "recipient",
        """to cc bcc recipient recipients email emails mail mailto receiver receivers addressee address
        attendee attendees invitee invitees phone mobile channel chat handle""",
    ),
    (
        "account",
        "account accounts iban payee beneficiary creditor bic wallet card payout destination",
    ),
    ("url", "url uri href link endpoint webhook callback host hostname domain server site"),
    ("command", "command cmd shell exec script argv"),
    ("path", "path file filename folder directory dir"),
    ("amount", "amount total sum price value fee charge limit"),
    ("reference", "id ids reference ref order invoice ticket case service customer number"),
)
_NAMES: dict[str, Kind] = {word: kind for kind, words in _SAID for word in words.split()}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_LONGEST_NAME = 200


class Things(NamedTuple):
    """The things that a text names, each once, normalized and sorted."""

    recipients: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()


def kind_of(pointer: str, value: Any) -> Kind:
    """Classify an argument by the shape of its value, else by its name."""
    bare = value.strip() if isinstance(value, str) else ""
    shaped = _classify_by_shape(bare)
    if shaped is not None:
        return shaped
    named = _classify_by_name(pointer)
    if named is not None and (named != "amount" or amounts_of(value)):
        return named
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "amount"
    return "text" if _has_several_words(bare) else "other"


def _classify_by_shape(text: str) -> Kind | None:
    if URL.match(text) and not _has_several_words(text):
        return "url"
    if EMAIL.search(text) and not _is_prose(text):
        return "recipient"
    return "account" if is_iban(text) else None


def _classify_by_name(pointer: str) -> Kind | None:
    """Classify by name, else None.

    The last part of the name counts most: `customer_email` is a recipient, `email_id` a reference.
    """
    name = next((part for part in reversed(pointer.split("/")) if part and not part.isdigit()), "")
    words = [word.casefold() for word in _WORDS.findall(name[:_LONGEST_NAME])]
    for word in reversed(words):
        if word in _NAMES:
            return _NAMES[word]
    return None


def _has_several_words(text: str) -> bool:
    return len(text.split()) > 1


def _is_prose(text: str) -> bool:
    """Return whether the text is more than addresses and the names that may precede them."""
    return len(text) > 1_000 or len(EMAIL.sub("", text).split()) > 4 * max(1, len(EMAIL.findall(text)))


def things_in(text: str) -> Things:
    """Extract the things that a text names."""
    urls = [url.rstrip(".,;:!?") for url in URL.findall(text)]
    rest = URL.sub(" ", text)
    accounts = [found for found in IBAN.findall(rest) if is_iban(found)]
    recipients = [*EMAIL.findall(rest), *PHONE.findall(rest)]
    for taken in (*accounts, *recipients):
        rest = rest.replace(taken, " ")
    hosts = [host for url in urls if (host := host_of(url))]
    paths = [one.rstrip(".") for one in PATH.findall(rest) if not one.replace("/", "").isdigit()]
    references = REFERENCE.findall(rest)
    domains = [name for name in DOMAIN.findall(rest) if not _FILES.fullmatch(name.rpartition(".")[2])]
    return Things(
        recipients=_sort_unique(normalize_recipient(one) for one in recipients),
        accounts=_sort_unique(normalize_account_number(one) for one in accounts),
        urls=_sort_unique(urls),
        domains=_sort_unique([*hosts, *(normalize_text(name) for name in domains)]),
        paths=_sort_unique(normalize_file_path(one) for one in paths),
        references=_sort_unique(normalize_text(one) for one in references),
        amounts=_sort_unique(
            f"{one:f}"
            for found in NUMBER.findall(PATH.sub(" ", rest))
            for one in parse_possible_amounts(found)
        ),
    )


def _sort_unique(found: Any) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(found)))


def normalize_recipient(text: str) -> str:
    """Normalize a recipient: a telephone number to its digits, anything else as text."""
    return "+" + re.sub(r"\D", "", text) if PHONE.fullmatch(text.strip()) else normalize_text(text)


def normalize_account_number(text: str) -> str:
    """Normalize an account number by removing spaces, dots and dashes."""
    return re.sub(r"[\s.-]+", "", normalize_text(text))


def normalize_file_path(text: str) -> str:
    """Normalize a path by removing detours; case is significant."""
    return normpath(text.strip()) if text.strip() else ""


def mask_reference_digits(reference: str) -> str:
    """Return the pattern that references of one kind share: each run of digits becomes `#`."""
    return re.sub(r"[0-9]+", "#", normalize_text(reference))


def host_of(url: str) -> str:
    """Return the host of an address in lower case.

    The result is empty if the address has no host or disguises one host as another.
    """
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host = parts.hostname or ""
    except ValueError:
        return ""
    odd = "@" in parts.netloc or "\\" in url or normalize_text(host) != host.casefold()
    return "" if odd else host.casefold().rstrip(".")


def is_iban(text: str) -> bool:
    """Return whether the text is an IBAN with valid check digits."""
    bare = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{11,30}", bare, re.ASCII):
        return False
    return int("".join(str(int(sign, 36)) for sign in bare[4:] + bare[:4])) % 97 == 1


def parse_possible_amounts(text: str) -> tuple[Decimal, ...]:
    """Return the amounts that a written number can mean: two for 1.250, one for 1,250.00."""
    bare = re.sub(r"[ \u00a0\u2019\u202f']", "", text)
    points, commas = bare.count("."), bare.count(",")
    if points and commas:
        last = "." if bare.rindex(".") > bare.rindex(",") else ","
        return _parse_decimals(bare.replace("," if last == "." else ".", "").replace(last, "."))
    sign = "." if points else ","
    if points + commas == 0:
        return _parse_decimals(bare)
    whole = bare.replace(sign, "")
    if points + commas > 1:
        return _parse_decimals(whole)
    part = bare.replace(",", ".")
    return _parse_decimals(part, whole) if len(bare.rpartition(sign)[2]) == 3 else _parse_decimals(part)


def _parse_decimals(*texts: str) -> tuple[Decimal, ...]:
    found = (
        Decimal(text) for text in texts if re.fullmatch(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", text, re.ASCII)
    )
    return tuple(
        number if number % 1 else number.to_integral_value() for number in map(_normalize_decimal, found)
    )


def _normalize_decimal(number: Decimal) -> Decimal:
    return number.normalize() + 0 if number else Decimal(0)


def amounts_of(value: Any) -> tuple[Decimal, ...]:
    """Return the amounts that a value can mean; none if the value is not a number."""
    if isinstance(value, bool):
        return ()
    if isinstance(value, int):
        return (Decimal(value),)
    text = re.sub(r"^[$€£]\s?|\s?(?:[$€£]|[A-Z]{3})$", "", str(value).strip())
    return parse_possible_amounts(text) if NUMBER.fullmatch(text) else ()
