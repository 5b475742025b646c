"""Helpers of the platform's API views: the caller, and idempotent POSTs (R-SEC-10, W1)."""

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import cast
from uuid import UUID

import orjson
from django.db import IntegrityError, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.platform_models import PlatformAnswer
from tenancy.rest.api_helpers import key_of
from tenancy.rest.api_view import APIView
from tenancy.rest.authentication import PlatformCaller
from tenancy.rest.idempotency import KeyReused, StoredResponse
from tenancy.rest.permissions import ForPlatform

LIFE = timedelta(hours=24)


class ByPlatform(APIView):
    """A door for platform administrators alone."""

    permission_classes = [ForPlatform]


def platform_caller(request: Request) -> PlatformCaller:
    """Return the caller; the permission check guarantees a platform administrator's program."""
    return cast("PlatformCaller", request.user)


def post_once_about(request: Request, tenant_id: UUID, act: Callable[[], StoredResponse]) -> Response:
    """Answer a POST about a tenant, once per Idempotency-Key.

    The act and its response are one transaction, so that a repeated request in the meantime waits for the
    first.

    Raises: ParseError (400), KeyReused (422).
    """
    key = key_of(request)
    if key is None:
        answer = act()
        return Response(answer.body, status=answer.status)
    with tenant_transaction(tenant_id):
        answer = _execute_once(platform_caller(request).key, key, request, act)
    headers = {"Idempotent-Replay": "true"} if answer.replayed else {}
    return Response(answer.body, status=answer.status, headers=headers)


def _execute_once(
    caller: UUID, key: str, request: Request, act: Callable[[], StoredResponse]
) -> StoredResponse:
    now, body = database_now(), orjson.dumps(request.data, option=orjson.OPT_SORT_KEYS)
    mine = PlatformAnswer.objects.filter(api_key_id=caller, path=request.path[:255], key=key)
    mine.filter(expires_at__lte=now).delete()
    digest = sha256(body).digest()
    claim = PlatformAnswer(
        api_key_id=caller, path=request.path[:255], key=key, body_digest=digest, expires_at=now + LIFE
    )
    try:
        with transaction.atomic():
            claim.save(force_insert=True)
    except IntegrityError:
        held = mine.get()
        if bytes(held.body_digest) != digest:
            raise KeyReused from None
        return StoredResponse(held.status or 200, orjson.loads(held.answer), replayed=True)
    answer = act()
    PlatformAnswer.objects.filter(id=claim.id).update(
        status=answer.status, answer=orjson.dumps(answer.body).decode()
    )
    return answer
