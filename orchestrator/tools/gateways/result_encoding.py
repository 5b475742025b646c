"""Encodes the result of a bundled tool as the answer that is stored."""

from hashlib import sha256
from typing import Any

import orjson
from pydantic import BaseModel

from orchestrator.core.domain.run_state import UnreadAnswer
from orchestrator.core.tools.isolation import MARK
from orchestrator.outbound.gateways.effect_result import ContentSink
from orchestrator.tools.gateways.egress.service_client import KEPT, CallFailed, ServiceResponse, ToolContext

UNREADABLE = "the answer cannot be read"


def is_isolated_call(context: ToolContext) -> bool:
    """Return whether the call is made in isolation."""
    return context.spec is not None and context.spec.isolated


def encode_tool_result(result: Any, *, apart: bool = False) -> ServiceResponse[Any]:
    """Encode a tool's result as an answer within the size limit.

    The answer is marked where the tool was called in isolation (`apart`).

    Raises: CallFailed for a result that is too large.
    """
    if isinstance(result, ServiceResponse):
        return result
    plain = result.model_dump(mode="json") if isinstance(result, BaseModel) else result
    body = orjson.dumps({**plain, MARK: True} if apart and isinstance(plain, dict) else plain)
    if len(body) > KEPT:
        detail = b"the result is larger than a result may be"
        whole = sha256(body).hexdigest()
        cut: ServiceResponse[Any] = ServiceResponse(
            body=body[:KEPT], status=0, size=len(body), whole=whole, truncated=True
        )
        raise CallFailed("malformed", sent=True, detail=detail, unread=cut)
    return ServiceResponse(body=body, status=0, size=len(body))


def unread_of(keeper: ContentSink, answer: ServiceResponse[Any], fault: str) -> UnreadAnswer:
    """Return the record of an unreadable answer: its status, its digest and its first bytes."""
    return UnreadAnswer(
        observation=keeper.keep(answer.body), size=answer.size or len(answer.body), status=answer.status,
        whole=answer.whole or sha256(answer.body).hexdigest(), fault=fault or UNREADABLE,
    )  # fmt: skip
