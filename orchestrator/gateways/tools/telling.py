"""What a tool of ours returned, as the answer that is kept."""

from typing import Any

import orjson
from pydantic import BaseModel

from orchestrator.core.isolation import MARK
from orchestrator.gateways.tools.http import KEPT, Answer, CallFailed, ToolContext


def apart(context: ToolContext) -> bool:
    """Whether the call is made in isolation."""
    return context.spec is not None and context.spec.isolated


def told(result: Any, *, apart: bool = False) -> Answer[Any]:
    """What a tool returned, as an answer within the bound; marked where it was called in isolation. Raises
    CallFailed."""
    if isinstance(result, Answer):
        return result
    plain = result.model_dump(mode="json") if isinstance(result, BaseModel) else result
    body = orjson.dumps({**plain, MARK: True} if apart and isinstance(plain, dict) else plain)
    if len(body) > KEPT:
        raise CallFailed("malformed", sent=True, detail=b"the result is larger than a result may be")
    return Answer(body=body, size=len(body))


def is_json(body: bytes) -> bool:
    """Whether these bytes are a JSON document."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True
