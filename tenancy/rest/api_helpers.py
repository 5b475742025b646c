"""Helpers of all API views: the caller, keyset pages, and idempotent POSTs."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Any, cast
from uuid import UUID

import orjson
from django.db.models import Q, QuerySet
from django.http import HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from tenancy.core.errors import Stale
from tenancy.core.timestamps import read_moment
from tenancy.rest.authentication import Caller
from tenancy.rest.idempotency import StoredResponse, execute_once
from tenancy.rest.serializer_fields import LARGEST

PAGE = 50
LONGEST_KEY = 255
SHOWN = "~"


def get_caller(request: Request) -> Caller:
    """Return the caller; the permission check guarantees that there is one."""
    return cast("Caller", request.user)


def key_of(request: Request) -> str | None:
    """Return the Idempotency-Key, or None.

    Raises: ParseError (400) for a key that cannot be stored.
    """
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise ParseError(
            f"An Idempotency-Key has 1 to {LONGEST_KEY} printable ASCII characters.",
            "idempotency-key-invalid",
        )
    return key


def post_once(request: Request, act: Callable[[], StoredResponse]) -> Response:
    """Answer a POST, once per Idempotency-Key.

    Raises: ParseError (400), KeyReused (422), KeyInUse (409).
    """
    who, key = get_caller(request), key_of(request)
    answer = execute_once(who.tenant, who.principal, key, request.path, request.data, act)
    headers = {"Idempotent-Replay": "true"} if answer.replayed else {}
    return Response(answer.body, status=answer.status, headers=headers)


def unless_known(request: Request, body: Any, version: str) -> HttpResponseBase | Response:
    """Return the body with its entity tag, or 304 if If-None-Match names that tag."""
    headers = build_etag_header(body, version)
    # A proxy that compresses the response makes its tag a weak one.
    known = {tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))}
    if {headers["ETag"], "*"} & known:
        return HttpResponseNotModified(headers=headers)
    return Response(body, headers=headers)


def build_etag_header(body: Any, version: str) -> dict[str, str]:
    """Return the header with the entity tag of a body.

    The tag changes with the whole body. The tag contains the version, which a write may require with
    If-Match.
    """
    shown = sha256(orjson.dumps(body, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return {"ETag": f'"{version}{SHOWN}{shown[:32]}"'}


def expected_tag(request: Request) -> str | None:
    """Return the version in the entity tag of If-Match; None if any version will do.

    Raises: Stale for a tag that cannot be one of this API.
    """
    given = request.headers.get("If-Match")
    if given is None or given.strip() == "*":
        return None
    tags = parse_etags(given)
    if len(tags) != 1 or tags[0].startswith("W/"):
        raise Stale
    return tags[0].strip('"').partition(SHOWN)[0]


def expected_version(request: Request) -> int | None:
    """Return the version number in If-Match; None if any version will do, -1 for an impossible number.

    Raises: Stale.
    """
    tag = expected_tag(request)
    if tag is None:
        return None
    return int(tag) if tag.isascii() and tag.isdigit() and len(tag) <= 9 else -1


def uuid_or_none(text: str) -> UUID | None:
    """Return an id in a path, or None if it is invalid; an invalid id is answered like a missing object."""
    try:
        return UUID(text)
    except ValueError:
        return None


def paginate_rows(
    request: Request, rows: "QuerySet[Any]", shown: Callable[[Any], Any], *, newest_first: bool = True
) -> Response:
    """Return one page by (created_at, id), with a cursor for the next one: {results, next, previous}."""
    limit = _parse_limit(request)
    cursor = request.query_params.get("cursor")
    order = ("-created_at", "-id") if newest_first else ("created_at", "id")
    if cursor is not None:
        at, row = _decode_cursor(cursor)
        beyond = "lt" if newest_first else "gt"
        # The redundant bound on `created_at` lets the index scan start there and not at its beginning.
        rows = rows.filter(
            Q(**{f"created_at__{beyond}": at}) | Q(**{f"id__{beyond}": row}), **{f"created_at__{beyond}e": at}
        )
    found = list(rows.order_by(*order)[: limit + 1])
    more = found[limit - 1] if len(found) > limit else None
    query = request.query_params.copy()
    following = None
    if more is not None:
        query["cursor"] = _encode_cursor(more)
        following = f"{request.path}?{query.urlencode()}"
    return Response({"results": [shown(row) for row in found[:limit]], "next": following, "previous": None})


def _parse_limit(request: Request) -> int:
    text = request.query_params.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= LARGEST):
        raise ParseError(f"limit is a whole number from 1 to {LARGEST}.", "limit-invalid")
    return int(text)


def _encode_cursor(row: Any) -> str:
    return urlsafe_b64encode(orjson.dumps([row.created_at.isoformat(), str(row.id)])).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        at, row = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return read_moment(at), UUID(row)
    except (ValueError, TypeError, AttributeError):
        raise ParseError("The cursor is not one of ours.", "cursor-invalid") from None
