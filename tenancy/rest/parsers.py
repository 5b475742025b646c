"""Strict, bounded JSON parser that keeps hostile input from the actions (W2, R-SEC-7)."""

from collections.abc import Mapping
from typing import IO, Any

import orjson
from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from tenancy.core.json_reading import MemberRepeated, check_members

DEPTH = 64
LARGEST_NUMBER = 2**53


class TooLarge(APIException):
    """The body is larger than what is taken."""

    status_code = 413
    default_detail = "The body is too large."
    default_code = "body-too-large"


class StrictJSONParser(BaseParser):
    """Parser of one JSON document: UTF-8, at most a megabyte and 64 levels.

    NUL, lone surrogates, numbers beyond 2^53 and repeated members are rejected.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value.

        Raises: TooLarge (413) and ParseError (400).
        """
        limit: int = getattr(settings, "INTERLOCK_BODY_BYTES", 1_048_576)
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise TooLarge
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not JSON: {error}", "not-json") from None
        fault = _find_json_fault(value)
        if fault is not None:
            raise ParseError(fault, "json-not-acceptable")
        try:
            check_members(body)
        except MemberRepeated as repeated:
            raise ParseError(repeated.msg, "member-repeated") from None
        return value


def _find_json_fault(value: Any) -> str | None:
    """Return the error of a value, or None; the value is searched without recursion."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH:
            return f"The document is nested deeper than {DEPTH}."
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.keys())
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str) and "\x00" in item:
                return "The document has a NUL character."
            elif isinstance(item, int | float) and abs(item) > LARGEST_NUMBER:
                return "The document has a number too large to be kept exactly."
        level = below
    return None
