"""Detect exfiltration: content that a call would carry out in an address or a text (R-TOOL-17, G3).

An address is compared with what was read part by part and as a whole: as it is, reversed and decoded. A
beginning of the address that was itself read as an address reveals nothing that its author did not know,
and neither does content of the goal. Text that the model had written before it read the address does not
count as read: a tool that echoes its arguments proves nothing.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.policy.provenance.normalization import compute_skeleton, decode_layers, encode_rot13
from orchestrator.core.policy.provenance.value_kinds import EMAIL, URL
from orchestrator.core.policy.provenance.value_matching import (
    SearchableText,
    is_stated_in_text,
    may_come_from_text,
)
from orchestrator.core.workflow.node_protocol import NodeContext

LEAST = 6
WINDOW = 8
RUN = 16
QUOTE = 40
LONGEST_ADDRESS = 2_000
LONGEST_TEXT = 20_000
MOST_ADDRESSES = 40
_BREAK = re.compile(r"[/?&=#;,+@:]+")
_CODE = re.compile(r"(?=[^\W_]*\d)(?!(?:19|20)\d\d$)[^\W_]{4,5}", re.ASCII)
_BARE = re.compile(
    r"(?<![\w@./:-])(?://)?(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?::[0-9]{1,5})?[/?#][^\s\"'<>)\]}]{1,2000}"
)
_DAY = re.compile(r"(?:19|20)\d\d[01]\d[0-3]\d")


def goes_unasked(view: NodeContext, spec: ToolSpec) -> bool:
    """Return whether a tool sends its arguments out without approval.

    That holds for a tool that only reads, and for a tool with outside access that changes something under a
    class without a gate.
    """
    if not spec.is_mutating:
        return True
    outside = spec.remote is not None or spec.egress is not None or spec.external
    return outside and not view.needs_gate(spec)


class ObservedText:
    """The texts that were read, and the goal.

    `read` are the texts that must not be carried out. `given` holds, for each of them, what the model had
    written by then, except addresses that were judged when they were sent.
    """

    def __init__(
        self,
        read: Sequence[SearchableText],
        goal: SearchableText,
        given: Sequence[Sequence[SearchableText]] = (),
    ) -> None:
        self.read, self.goal = tuple(read), goal
        self.given = tuple(given) or ((),) * len(self.read)

    def holds(self, bare: str) -> bool:
        """Return whether any text that was read contains these letters and digits."""
        return any(bare in text.bare for text in self.read)

    def names(self, host: str) -> bool:
        """Return whether this host is in the goal, or was read before the model wrote it."""
        bare = compute_skeleton(host)
        return bare in self.goal.bare or any(
            bare in text.bare and not any(bare in one.bare for one in own) for text, own in self._pairs()
        )

    def count_vouched_cuts(self, url: str, cuts: Sequence[int]) -> int:
        """Return how many of the cuts of an address lie within a text that was read."""
        return max((_count_observed_cuts(url, cuts, text, own) for text, own in self._pairs()), default=0)

    def _pairs(self) -> Iterator[tuple[SearchableText, Sequence[SearchableText]]]:
        return zip(self.read, self.given, strict=True)

    def betrays(self, text: str, bare: str) -> bool:
        """Return whether a text was read and the goal does not state the text."""
        return self.holds(bare) and not (
            is_stated_in_text(text, self.goal) or (len(bare) >= WINDOW and bare in self.goal.bare)
        )

    def windows(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the pieces of WINDOW characters of these texts that were read and are not in the goal.

        All pieces are looked up in one pass over what was read.
        """
        wanted = _build_text_windows(texts)
        found: set[str] = set()
        for bare in (text.bare for text in self.read) if wanted else ():
            found.update(
                piece for at in range(len(bare) - WINDOW + 1) if (piece := bare[at : at + WINDOW]) in wanted
            )
        return frozenset(piece for piece in found if piece not in self.goal.bare)


class UrlPayload(NamedTuple):
    """The parts of an address that can carry content.

    `parts` are all of them in order; `values` are those that are no parameter names.
    """

    parts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def addresses_in(text: str, *, bare: bool = False) -> list[str]:
    """Return the addresses in a text, each once, without the punctuation that ends its sentence.

    With `bare` also strings that only become an address when they are shown, such as
    //attacker.example/?k=1. The list holds at most MOST_ADDRESSES + 1 entries: a text with more is not
    searched further.
    """
    found = [*URL.findall(text), *(_BARE.findall(URL.sub(" ", text)) if bare else ())]
    return list(dict.fromkeys(url.rstrip(".,;:!?") for url in found))[: MOST_ADDRESSES + 1]


def address_carries(url: str, known: ObservedText, before: str = "") -> bool:
    """Return whether an address carries out content that was read.

    `before` are the values that were sent before its own: content that was split into pieces is joined
    again. An address that is too long to be searched counts as carrying.
    """
    if len(url) > LONGEST_ADDRESS:
        return True
    load = load_of(url, known)
    if not load.parts:
        return False
    read = [reading for part in load.parts for reading in _list_decoded_variants(part)]
    strung = [
        bare
        for text in (_join_parts(load.parts), _join_parts(load.values))
        for bare in _list_variant_skeletons(text)
    ]
    # The earlier values were judged when they were sent: only a match that extends into this address is
    # new.
    earlier = _build_text_windows(_list_variant_skeletons(before[-LONGEST_ADDRESS:]))
    crossing = _list_variant_skeletons(before[-LONGEST_ADDRESS:] + _join_parts(load.values)) if before else []
    standing = known.windows([*(bare for _, bare in read), *strung, *crossing])
    return (
        any(_is_code(part, known) for part in load.parts)
        or any(_is_fully_observed(text, bare, standing, known) for text, bare in read)
        or any(_has_observed_run(bare, standing, known) for bare in strung)
        or any(_has_observed_run(bare, standing - earlier, known) for bare in crossing)
    )


def sent_by(urls: Iterable[str], goal: SearchableText) -> str:
    """Return the values of addresses that were sent, in order."""
    nothing = ObservedText((), goal)
    return _join_parts(value for url in urls for value in load_of(url[:LONGEST_ADDRESS], nothing).values)


def text_carries(text: str, known: ObservedText) -> bool:
    """Return whether a text sent to an outside server carries out what was read elsewhere.

    It does with a quotation, an e-mail address, a word with digits in it, or any content at all in encoded
    form. A text that is too long to be searched counts as carrying.
    """
    if len(text) > LONGEST_TEXT:
        return True
    if any(known.betrays(one, compute_skeleton(one)) for one in EMAIL.findall(text)):
        return True
    if any(_is_token(bare := compute_skeleton(word)) and known.betrays(word, bare) for word in text.split()):
        return True
    straight = compute_skeleton(text)
    hidden = [bare for _, bare in _list_decoded_variants(text) if bare != straight]
    hidden.extend(compute_skeleton(told) for word in text.split() for told in _decode_word(word))
    standing = known.windows([straight, *hidden])
    if _run_of(straight, standing, known, QUOTE):
        return True
    under = standing - _build_text_windows([straight])
    return any(_has_observed_run(bare, under, known) for bare in hidden)


def quotes_across(pairs: Iterable[tuple[str, str]], known: ObservedText) -> bool:
    """Return whether a text and its successor together quote what was read elsewhere, but neither alone.

    All pairs are compared in one pass over what was read.
    """
    told = [(compute_skeleton(first), compute_skeleton(then)) for first, then in pairs]
    standing = known.windows([first + then for first, then in told])
    return any(
        _run_of(first + then, standing, known, QUOTE)
        and not _run_of(first, standing, known, QUOTE)
        and not _run_of(then, standing, known, QUOTE)
        for first, then in told
    )


def load_of(url: str, known: ObservedText) -> UrlPayload:
    """Return the parts of an address behind its known beginning: labels of its host, path, query.

    The known beginning is the part that was read as it is.
    """
    told = url if "://" in url else f"//{url}"
    try:
        parts = urlsplit(told)
        host, user = parts.hostname or "", f"{parts.username or ''}/{parts.password or ''}"
    except ValueError:
        return UrlPayload((url,), (url,))
    start = told.index("//") + 2 + len(parts.netloc)
    cuts = [start, *(found.end() for found in _BREAK.finditer(told, start)), len(told)]
    known_cuts = known.count_vouched_cuts(told, cuts)
    rest = told[cuts[known_cuts - 1] :] if known_cuts else told[start:]
    named = known_cuts > 0 or known.names(host)
    labels = () if named else tuple(host.split(".")[:-2])
    pieces = tuple(piece for piece in _BREAK.split(rest) if piece)
    given = tuple(one.partition("=")[2] or one for one in re.split(r"[/?&#;,+]+", rest))
    users = tuple(piece for piece in _BREAK.split(user) if piece)
    return UrlPayload((*users, *labels, *pieces), (*users, *labels, *(one for one in given if one)))


def _count_observed_cuts(
    url: str, cuts: Sequence[int], text: SearchableText, own: Sequence[SearchableText]
) -> int:
    """Return how many of the cuts lie within this text; 0 if the model had written as much itself.

    The cuts are found by binary search, because a longer beginning contains the shorter ones.
    """
    low, high = 0, len(cuts)
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (middle + 1, high) if compute_skeleton(url[: cuts[middle]]) in text.bare else (low, middle)
        )
    named = url[url.index("//") + 2 : cuts[low - 1]] if low else ""
    return 0 if any(may_come_from_text(named, one) for one in own) else low


def _build_text_windows(texts: Iterable[str]) -> set[str]:
    return {text[at : at + WINDOW] for text in texts for at in range(len(text) - WINDOW + 1)}


def _list_variant_skeletons(text: str) -> list[str]:
    return [bare for _, bare in _list_decoded_variants(text)]


def _join_parts(parts: Iterable[str]) -> str:
    return "".join(parts)


# -- readings of a part


def _list_decoded_variants(text: str) -> list[tuple[str, str]]:
    """Return each possible reading of a text, with its letters and digits.

    The readings are the text as it is, reversed, in ROT13 and decoded.
    """
    found: dict[str, str] = {}
    for turned in (text, text[::-1], encode_rot13(text)):
        for layer in (*decode_layers(turned), *_decode_word(turned)):
            bare = compute_skeleton(layer)
            for one in (bare, bare[::-1], compute_skeleton(encode_rot13(layer))):
                found.setdefault(one, layer)
    return [(layer, bare) for bare, layer in found.items() if len(bare) >= LEAST]


def _decode_word(word: str) -> Iterator[str]:
    """Yield the decoded forms of one word if all of it is encoded, however short."""
    for form, decode in _CODES:
        if form.fullmatch(word) is None:
            continue
        try:
            told = decode(word).decode()
        except (ValueError, binascii.Error):
            continue
        if told.isprintable():
            yield told


def _from_base64(word: str) -> bytes:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4))


def _from_base32(word: str) -> bytes:
    bare = word.rstrip("=").upper()
    return base64.b32decode(bare + "=" * (-len(bare) % 8))


_CODES: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}"), _from_base64),
    (re.compile(r"[A-Za-z2-7]{8,}={0,6}"), _from_base32),
    (re.compile(r"(?:[0-9A-Fa-f]{2}){3,}"), bytes.fromhex),
)


# -- comparison with observed text


def _is_code(part: str, known: ObservedText) -> bool:
    """Return whether a part is a short code with digits, such as a PIN, that was read as a whole word.

    A code that the goal states does not count.
    """
    if _CODE.fullmatch(part) is None or is_stated_in_text(part, known.goal):
        return False
    return any(is_stated_in_text(part, text) for text in known.read)


def _is_token(bare: str) -> bool:
    figures = any(sign.isdigit() for sign in bare)
    return len(bare) >= WINDOW and figures and _DAY.fullmatch(bare) is None


def _is_fully_observed(text: str, bare: str, standing: frozenset[str], known: ObservedText) -> bool:
    """Return whether all of a part was read and is not in the goal."""
    if len(bare) >= WINDOW and bare[:WINDOW] not in standing and bare[-WINDOW:] not in standing:
        return False
    return known.betrays(text, bare)


def _has_observed_run(bare: str, standing: frozenset[str], known: ObservedText) -> bool:
    """Return whether a piece of the text was read that is long enough or contains digits."""
    return _holds_figures(bare, standing) or _run_of(bare, standing, known, RUN)


def _holds_figures(bare: str, standing: frozenset[str]) -> bool:
    pieces = (bare[at : at + WINDOW] for at in range(len(bare) - WINDOW + 1))
    return any(piece in standing and _is_token(piece) for piece in pieces)


def _run_of(bare: str, standing: frozenset[str], known: ObservedText, length: int) -> bool:
    """Return whether `length` letters and digits in a row were read."""
    run = 0
    for at in range(len(bare) - WINDOW + 1):
        run = run + 1 if bare[at : at + WINDOW] in standing else 0
        if run > length - WINDOW and known.holds(bare[at + WINDOW - length : at + WINDOW]):
            return True
    return False
