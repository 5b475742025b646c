"""Every error the API answers is one RFC 9457 problem document; one table says with which status (W5).

drf-standardized-errors flattens what DRF raises; this module translates our own errors and shapes the
document.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.handler import exception_handler as standardized
from drf_standardized_errors.types import ErrorResponse, ExceptionHandlerContext
from psycopg.errors import DiskFull
from psycopg_pool import PoolTimeout
from rest_framework.exceptions import APIException, ErrorDetail, NotAuthenticated, ParseError
from rest_framework.response import Response

from config.api.remedies import remedy_of
from config.site.pages import render_refusal_page, wants_page
from orchestrator.core.common.errors import DiskFull as StoreFull
from tenancy.core.errors import InterlockError

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:interlock:problem:"
AWAY_SECONDS = 5
NOT_UNDERSTOOD = "The request could not be understood."
NO_KEY = (
    'The request has no key. Send the header "Authorization: Bearer ilk_…"; an administrator makes a key '
    "on the page API keys (/tenant/keys), or by manage.py key create."
)
_SORRY = "Something went wrong on our side; it has been logged."
log = structlog.stdlib.get_logger(__name__)


class Refusal(APIException):
    """An `InterlockError` on its way to a response.

    What a caller cannot have caused (500) is logged with its data and answered without it.
    """

    def __init__(self, error: InterlockError) -> None:
        self.status_code = error.http_status
        internal = self.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
        super().__init__(detail=_SORRY if internal else str(error), code=error.code)
        self.data: dict[str, Any] = {} if internal else dict(error.data)
        self.code = "internal-error" if internal else error.code
        # DRF writes both into headers.
        if self.status_code == HTTPStatus.UNAUTHORIZED:
            self.auth_header = "Bearer"
        if "retry_after" in self.data:
            self.wait = self.data["retry_after"]
        if internal:
            log.error("internal_refusal", code=error.code, data=error.data, exc_info=error)


def build_problem_document(
    *, code: str, status: int, detail: str, instance: str = "", title: str | None = None, **more: Any
) -> dict[str, Any]:
    """One problem document: what was refused, and in `remedy` what to do next. `more` are extension members,
    left out when empty."""
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + code,
        "title": title or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if remedy := remedy_of(code):
        body["remedy"] = remedy
    if instance:
        body["instance"] = instance
    return body | {name: value for name, value in more.items() if value}


def to_json_pointer(attr: str | None) -> str:
    """The JSON pointer of a dotted attribute: `items.0.price` → `/items/0/price`.

    What is wrong with an object as a whole points to the object.
    """
    parts = attr.split(".") if attr else []
    if parts and parts[-1] == "non_field_errors":
        parts.pop()
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


class StoreAway(InterlockError):
    """The database does not answer; what was accepted is kept."""

    code = "store-unavailable"
    http_status = 503


class Handler(ExceptionHandler):
    """Knows our own errors, and the database's troubles, besides those of Django and DRF."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """An `InterlockError` becomes a `Refusal` with the status of the table.

        What Django refuses of a request is the caller's fault (400). A full disk
        refuses new work (507), an absent database asks to come back (503).
        """
        if isinstance(exc, InterlockError):
            return Refusal(exc)
        if isinstance(exc, SuspiciousOperation | BadRequest):
            return ParseError(NOT_UNDERSTOOD, "bad-request")
        if isinstance(exc, NotAuthenticated):
            # The header that asks for a key was written into this exception already.
            exc.detail = ErrorDetail(NO_KEY, exc.default_code)
        if isinstance(exc, DatabaseError | PoolTimeout):
            if isinstance(exc.__cause__, DiskFull):
                return Refusal(StoreFull())
            if isinstance(exc, OperationalError | InterfaceError | PoolTimeout):
                log.error("database.unavailable", exc_info=exc)
                return Refusal(StoreAway(retry_after=AWAY_SECONDS))
        converted: Exception = super().convert_known_exceptions(exc)
        return converted


class Formatter(ExceptionFormatter):
    """Writes the flattened errors as a problem document."""

    def format_error_response(self, error_response: ErrorResponse) -> dict[str, Any]:
        """Shape: type, title, status, detail, code, instance, errors[{pointer, code, detail}], data."""
        request = self.context.get("request")
        instance = request.path if request is not None else ""
        if isinstance(self.exc, Refusal):
            data = dict(self.exc.data)
            if (where := data.pop("pointer", None)) is not None and "errors" not in data:
                data["errors"] = [{"pointer": where, "code": self.exc.code, "detail": str(self.exc.detail)}]
            return build_problem_document(
                code=self.exc.code,
                status=self.exc.status_code,
                detail=str(self.exc.detail),
                instance=instance,
                errors=data.pop("errors", None),
                data=data,
            )
        several = [
            {"pointer": to_json_pointer(one.attr), "code": one.code, "detail": one.detail}
            for one in error_response.errors
        ]
        fields = several if error_response.type == "validation_error" else None
        first = error_response.errors[0]
        code = "invalid-input" if fields else first.code.replace("_", "-")
        detail = "The request names fields that are not acceptable." if fields else first.detail
        return build_problem_document(
            code=code, status=self.exc.status_code, detail=detail, instance=instance, errors=fields
        )


def exception_handler(exc: Exception, context: ExceptionHandlerContext) -> Response | None:
    """DRF's hook: the same document for every error, with its media type."""
    response: Response | None = standardized(exc, context)
    if response is not None:
        response.content_type = CONTENT_TYPE
    return response


def _build_error_response(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    if wants_page(request):
        return render_refusal_page(request, status, detail, code=code)
    body = build_problem_document(code=code, status=status, detail=detail, instance=request.path)
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's 404 outside DRF."""
    return _build_error_response(request, 404, "not-found", "There is nothing at this address.")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's 403 outside DRF."""
    return _build_error_response(request, 403, "forbidden", "This is not open to you.")


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's 400 outside DRF."""
    return _build_error_response(request, 400, "bad-request", NOT_UNDERSTOOD)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500: never a traceback."""
    return _build_error_response(request, 500, "internal-error", _SORRY)
