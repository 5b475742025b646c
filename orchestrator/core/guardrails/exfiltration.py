"""What a call would take away: what was read on the way, inside an address or a text (R-TOOL-17, G3).

An address is compared part by part and as a whole, as it is, turned round and decoded, with what was read. As
much of it as was itself read as an address carries nothing that its author did not know; nor does what the
goal says. What the model had written itself before it read it is no such address: a tool that echoes its
arguments vouches for nothing.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.policy.provenance.normalization import compute_skeleton, decode_layers, encode_rot13
from orchestrator.core.policy.provenance.value_kinds import EMAIL, URL, Kind
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
MOST_BEFORE = 40
_BREAK = re.compile(r"[/?&=#;,+@:]+")
_CODE = re.compile(r"(?=[^\W_]*\d)(?!(?:19|20)\d\d$)[^\W_]{4,5}", re.ASCII)
_BARE = re.compile(
    r"(?<![\w@./:-])(?://)?(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?::[0-9]{1,5})?[/?#][^\s\"'<>)\]}]{1,2000}"
)
_DAY = re.compile(r"(?:19|20)\d\d[01]\d[0-3]\d")

ECHOES_SINCE = 6


def goes_unasked(view: NodeContext, spec: ToolSpec) -> bool:
    """Whether calls of a tool take their arguments where they lead with nobody asked: of one that only reads,
    and of one that goes outside and writes by a class without a gate. In older runs of the first alone."""
    if not spec.mutating:
        return True
    outside = spec.remote is not None or spec.egress is not None or spec.external
    return outside and view.manifest.core_version >= ECHOES_SINCE and not view.needs_gate(spec)


class ObservedText:
    """What was read, and what the goal says; `read` are the texts that are not to be taken away, `given`
    beside each what the model had written by then, but for addresses that were judged when they went."""

    def __init__(
        self,
        read: Sequence[SearchableText],
        goal: SearchableText,
        given: Sequence[Sequence[SearchableText]] = (),
    ) -> None:
        self.read, self.goal = tuple(read), goal
        self.given = tuple(given) or ((),) * len(self.read)

    def holds(self, bare: str) -> bool:
        """Whether any text that was read holds these letters and digits."""
        return any(bare in text.bare for text in self.read)

    def names(self, host: str) -> bool:
        """Whether this host was read without that the model wrote it before, or stands in the goal."""
        bare = compute_skeleton(host)
        return bare in self.goal.bare or any(
            bare in text.bare and not any(bare in one.bare for one in own) for text, own in self._pairs()
        )

    def vouched(self, url: str, cuts: Sequence[int]) -> int:
        """How many of the cuts of an address lie within what was read as it stands."""
        return max((_count_observed_cuts(url, cuts, text, own) for text, own in self._pairs()), default=0)

    def _pairs(self) -> Iterator[tuple[SearchableText, Sequence[SearchableText]]]:
        return zip(self.read, self.given, strict=True)

    def betrays(self, text: str, bare: str) -> bool:
        """Whether it was read, and the goal does not say it."""
        return self.holds(bare) and not (
            is_stated_in_text(text, self.goal) or (len(bare) >= WINDOW and bare in self.goal.bare)
        )

    def windows(self, texts: Iterable[str]) -> frozenset[str]:
        """The pieces of one length of these texts that stand in what was read and not in the goal, found in
        one look at what was read."""
        wanted = _build_text_windows(texts)
        found: set[str] = set()
        for bare in (text.bare for text in self.read) if wanted else ():
            found.update(
                piece for at in range(len(bare) - WINDOW + 1) if (piece := bare[at : at + WINDOW]) in wanted
            )
        return frozenset(piece for piece in found if piece not in self.goal.bare)


class UrlPayload(NamedTuple):
    """What an address can carry: its parts in order, and those of them that are no names of parameters."""

    parts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def addresses_in(text: str, *, bare: bool = False) -> list[str]:
    """The addresses within a text, each once, without what ends its sentence; with `bare` also what only
    becomes one where it is shown, such as //attacker.example/?k=1. One more than MOST_ADDRESSES at most: more
    than that nobody looks through."""
    found = [*URL.findall(text), *(_BARE.findall(URL.sub(" ", text)) if bare else ())]
    return list(dict.fromkeys(url.rstrip(".,;:!?") for url in found))[: MOST_ADDRESSES + 1]


def address_carries(url: str, known: ObservedText, before: str = "") -> bool:
    """Whether an address takes away what was read. `before` are the values that went out in front of its own:
    what was cut into pieces is put together again. One that is too long to be looked through carries."""
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
    # What stood in front was judged when it went: only what crosses into this address is new.
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
    """The values of addresses that went out, in their order."""
    nothing = ObservedText((), goal)
    return _join_parts(value for url in urls for value in load_of(url[:LONGEST_ADDRESS], nothing).values)


def text_carries(text: str, known: ObservedText) -> bool:
    """Whether a text that goes to a server outside takes away what was read elsewhere: a quotation, an
    e-mail address, a word with figures in it, or anything at all in another writing."""
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
    """Whether a text and the one after it quote together what was read elsewhere, though neither does alone;
    what was read is looked at once for all of them."""
    told = [(compute_skeleton(first), compute_skeleton(then)) for first, then in pairs]
    standing = known.windows([first + then for first, then in told])
    return any(
        _run_of(first + then, standing, known, QUOTE)
        and not _run_of(first, standing, known, QUOTE)
        and not _run_of(then, standing, known, QUOTE)
        for first, then in told
    )


def load_of(url: str, known: ObservedText) -> UrlPayload:
    """The parts of an address behind what of it was read as it stands: labels of its host, path, query."""
    told = url if "://" in url else f"//{url}"
    try:
        parts = urlsplit(told)
        host, user = parts.hostname or "", f"{parts.username or ''}/{parts.password or ''}"
    except ValueError:
        return UrlPayload((url,), (url,))
    start = told.index("//") + 2 + len(parts.netloc)
    cuts = [start, *(found.end() for found in _BREAK.finditer(told, start)), len(told)]
    known_cuts = known.vouched(told, cuts)
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
    """How many of the cuts lie within this text; a longer beginning holds the shorter. None, where the model
    had written as much."""
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


# -- what a part says


def _list_decoded_variants(text: str) -> list[tuple[str, str]]:
    """What a text may say: as it is, backwards, in ROT13, decoded, and the letters and digits of that."""
    found: dict[str, str] = {}
    for turned in (text, text[::-1], encode_rot13(text)):
        for layer in (*decode_layers(turned), *_decode_word(turned)):
            bare = compute_skeleton(layer)
            for one in (bare, bare[::-1], compute_skeleton(encode_rot13(layer))):
                found.setdefault(one, layer)
    return [(layer, bare) for bare, layer in found.items() if len(bare) >= LEAST]


def _decode_word(word: str) -> Iterator[str]:
    """What one word stands for where all of it is a code, however short."""
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


# -- whether that was read


def _is_code(part: str, known: ObservedText) -> bool:
    """A short code with figures in it, such as a PIN, stands there as a word of its own."""
    if _CODE.fullmatch(part) is None or is_stated_in_text(part, known.goal):
        return False
    return any(is_stated_in_text(part, text) for text in known.read)


def _is_token(bare: str) -> bool:
    figures = any(sign.isdigit() for sign in bare)
    return len(bare) >= WINDOW and figures and _DAY.fullmatch(bare) is None


def _is_fully_observed(text: str, bare: str, standing: frozenset[str], known: ObservedText) -> bool:
    """Whether all of a part was read."""
    if len(bare) >= WINDOW and bare[:WINDOW] not in standing and bare[-WINDOW:] not in standing:
        return False
    return known.betrays(text, bare)


def _has_observed_run(bare: str, standing: frozenset[str], known: ObservedText) -> bool:
    """Whether a piece of it was read that is long enough, or that holds figures."""
    return _holds_figures(bare, standing) or _run_of(bare, standing, known, RUN)


def _holds_figures(bare: str, standing: frozenset[str]) -> bool:
    pieces = (bare[at : at + WINDOW] for at in range(len(bare) - WINDOW + 1))
    return any(piece in standing and _is_token(piece) for piece in pieces)


def _run_of(bare: str, standing: frozenset[str], known: ObservedText, length: int) -> bool:
    """Whether so many letters and digits in a row were read."""
    run = 0
    for at in range(len(bare) - WINDOW + 1):
        run = run + 1 if bare[at : at + WINDOW] in standing else 0
        if run > length - WINDOW and known.holds(bare[at + WINDOW - length : at + WINDOW]):
            return True
    return False


# -- as runs of an older core look


def carried_before(kind: Kind, text: str, known: ObservedText, parts: Callable[[str], list[str]]) -> bool:
    """What runs that were admitted earlier take for an address that takes something away."""
    if kind != "url" or known.holds(compute_skeleton(text)):
        return False
    told = [
        layer
        for part in parts(text)[:MOST_BEFORE]
        for layer in decode_layers(part)
        if len(compute_skeleton(layer)) >= LEAST
    ]
    return any(
        known.holds(compute_skeleton(layer)) and not is_stated_in_text(layer, known.goal) for layer in told
    )
