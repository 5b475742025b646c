"""One form for the replies of all providers: answer, requests, refusal, or none of them (R-LOOP-9)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

from budgets.core.pricing import sane_usage
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import ModelFailed, ModelReplied, ToolRequest
from orchestrator.llm.gateways.sealed_arguments import sealed_arguments
from orchestrator.outbound.gateways.effect_result import ContentSink, EffectResult
from orchestrator.tools.gateways.secret_redaction import without_secret
from traces.core.sealed_references import text_without
from traces.sealed_values import Vault

MAX_CALLS = 64
MAX_NAME = 200
MAX_ID = 200
MAX_ARGUMENTS = 64 * 1024
MAX_TEXT = 256 * 1024
MAX_RETRY_AFTER_MS = 30_000


class WrittenCall(NamedTuple):
    """One requested call as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply before it is truncated.

    `usage` is as reported, under our own names. `unkept` counts bytes that were written in addition to what
    is kept, such as thoughts. `dropped` counts requests beyond the first 64 that were left out earlier.
    `capped` names what was truncated earlier.
    """

    text: str = ""
    calls: tuple[WrittenCall, ...] = ()
    refusal: str | None = None
    finish: str = "stop"
    usage: Mapping[str, object] = field(default_factory=dict)
    model: str = ""
    dropped: int = 0
    unkept: int = 0
    capped: tuple[str, ...] = ()


def estimate_usage(effect: CallModel, request: bytes, reply_bytes: int) -> dict[str, Decimal]:
    """Estimate usage: each byte counts as one token, and never more than what was reserved (M11)."""
    counted = {"input_tokens": Decimal(len(request)), "output_tokens": Decimal(reply_bytes)}
    return {name: min(amount, effect.reserve.get(name, amount)) for name, amount in counted.items()}


def build_reply_outcome(
    effect: CallModel, request: bytes, reply: Reply, salt: bytes, vault: Vault | None = None
) -> EffectResult:
    """Build the outcome of a call that brought a reply.

    Sensitive values in the arguments of its calls are sealed in the `vault` and kept as references. Without
    a vault they are redacted.
    """
    keeper = ContentSink(salt)
    bounded = _truncate_reply(reply)
    written = len(bounded.text.encode()) + sum(
        len(call.name) + len(call.arguments.encode()) for call in bounded.calls
    )
    usage, counted = sane_usage(reply.usage, estimate_usage(effect, request, written + reply.unkept))
    if vault is not None:
        bounded = _seal_reply(bounded, vault, keeper)
    answer = bounded.text if bounded.text.strip() and not bounded.calls and bounded.refusal is None else None
    fields: dict[str, Any] = {
        "effect": effect.id,
        "reply": keeper.keep_json(_build_reply_document(bounded)),
        "answer": keeper.keep(answer.encode()) if answer is not None else None,
        "requests": tuple(
            ToolRequest(call_id=call.id, name=call.name, arguments=keeper.keep(call.arguments.encode()))
            for call in bounded.calls
        ),
        "refusal": bounded.refusal is not None,
        "finish": bounded.finish[:64] or "stop",
        "usage": usage,
        "counted": counted,
    }
    fields["redacted"] = tuple(sorted(keeper.redacted))
    return EffectResult(kind=ModelReplied, fields=fields, bodies=keeper.bodies)


def build_failure_outcome(
    effect: CallModel,
    salt: bytes,
    error: str,
    *,
    transient: bool,
    detail: str = "",
    retry_after_ms: int | None = None,
    usage: Mapping[str, Decimal] | None = None,
) -> EffectResult:
    """Build the outcome of a call that brought no reply. `retry_after_ms` is capped at 30 s (M10)."""
    keeper = ContentSink(salt)
    wish = None if retry_after_ms is None else max(0, min(MAX_RETRY_AFTER_MS, retry_after_ms))
    fields = {
        "effect": effect.id, "error": error, "transient": transient, "detail": keeper.keep_text(detail),
        "retry_after_ms": wish, "usage": dict(usage or {}),
    }  # fmt: skip
    return EffectResult(kind=ModelFailed, fields=fields, bodies=keeper.bodies)


def redact_secret(text: str, secret: str, *, cut: bool = False) -> str:
    """Remove from a text the key that its call was sent with, which some servers repeat.

    `cut`: the text may end in the middle of a key.
    """
    if not secret:
        return text
    found = without_secret(text.encode("utf-8", "surrogatepass"), secret, cut=cut)
    return found.decode("utf-8", "surrogatepass")


def redact_reply(reply: Reply, secret: str) -> Reply:
    """Remove the call's key from a reply, which would otherwise appear in the next prompt (M16)."""
    if not secret:
        return reply

    def clean(text: str, limit: int, name: str = "") -> str:
        return redact_secret(
            text, secret, cut=name in reply.capped or len(text.encode("utf-8", "replace")) >= limit
        )

    calls = tuple(
        WrittenCall(
            id=clean(call.id, MAX_ID),
            name=clean(call.name, MAX_NAME),
            arguments=clean(call.arguments, MAX_ARGUMENTS, f"arguments:{call.id}"),
        )
        for call in reply.calls
    )
    refusal = None if reply.refusal is None else clean(reply.refusal, MAX_TEXT)
    return replace(
        reply, text=clean(reply.text, MAX_TEXT, "text"), calls=calls, refusal=refusal,
        finish=redact_secret(reply.finish, secret, cut=True), model=clean(reply.model, MAX_NAME),
        capped=tuple(redact_secret(name, secret, cut=True) for name in reply.capped),
    )  # fmt: skip


def distinct_ids(wanted: list[str]) -> list[str]:
    """Fill in missing call ids and make all of them distinct, deterministically.

    The first call with an id keeps it (M13).
    """
    taken: set[str] = set()
    found: list[str] = []
    for number, raw in enumerate(wanted, start=1):
        base = raw[:MAX_ID] or f"call_{number}"
        candidate, again = base, 1
        while candidate in taken or (candidate != base and candidate in wanted):
            again += 1
            candidate = f"{base[: MAX_ID - 12]}_{again}"
        taken.add(candidate)
        found.append(candidate)
    return found


def truncate_utf8(text: str, limit: int) -> str:
    """Return at most `limit` bytes of UTF-8, without splitting a character.

    Invalid Unicode (a lone surrogate) is written as an escape.
    """
    body = text.encode("utf-8", "backslashreplace")
    return body[:limit].decode("utf-8", "ignore")


def _truncate_reply(reply: Reply) -> Reply:
    capped = list(reply.capped)
    text = truncate_utf8(reply.text, MAX_TEXT)
    refusal = None if reply.refusal is None else truncate_utf8(reply.refusal, MAX_TEXT)
    if len(text) < len(reply.text):
        capped.append("text")
    kept = reply.calls[:MAX_CALLS]
    ids = distinct_ids([truncate_utf8(call.id, MAX_ID) for call in kept])
    calls = tuple(
        WrittenCall(
            id=call_id,
            name=truncate_utf8(call.name, 4 * MAX_NAME)[:MAX_NAME],
            arguments=truncate_utf8(call.arguments, MAX_ARGUMENTS),
        )
        for call_id, call in zip(ids, kept, strict=True)
    )
    capped.extend(
        f"arguments:{after.id}" for before, after in zip(kept, calls, strict=True)
        if len(after.arguments) < len(before.arguments)
    )  # fmt: skip
    return Reply(
        text=text, calls=calls, refusal=refusal, finish=truncate_utf8(reply.finish, 64), usage=reply.usage,
        model=truncate_utf8(reply.model, MAX_NAME), dropped=reply.dropped + len(reply.calls) - len(kept),
        capped=tuple(capped),
    )  # fmt: skip


def _seal_reply(reply: Reply, vault: Vault, keeper: ContentSink) -> Reply:
    """Replace sensitive values in a reply by references.

    This runs twice, because a value that one call marks as secret may appear in another call, too.
    """
    calls = list(reply.calls)
    for _ in range(2):
        for number, call in enumerate(calls):
            arguments, kinds = sealed_arguments(call.arguments, call.name, vault)
            keeper.redacted.update(kinds)
            calls[number] = call._replace(arguments=arguments)
    keeper.bodies.update(vault.bodies)
    refusal = None if reply.refusal is None else text_without(reply.refusal, vault.known)
    return replace(reply, calls=tuple(calls), text=text_without(reply.text, vault.known), refusal=refusal)


def _build_reply_document(reply: Reply) -> dict[str, Any]:
    """Build the stored document of a reply, which the next prompt quotes from."""
    document: dict[str, Any] = {
        "v": 1,
        "text": reply.text,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls],
        "finish": reply.finish,
        "model": reply.model,
    }
    marks = {
        "refusal": reply.refusal,
        "dropped_calls": reply.dropped or None,
        "capped": list(reply.capped) or None,
    }
    return document | {name: mark for name, mark in marks.items() if mark is not None}
