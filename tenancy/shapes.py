"""Shapes that every API door shares: inputs that know all their fields, and pages."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from tenancy.core.errors import NotFound

Row = TypeVar("Row", bound=serializers.Serializer[Any])
SENT = 400
LARGEST = 200
AMOUNT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)


class Text(serializers.CharField):
    """A text and nothing that could be made one: 5 is not "5"."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        if not isinstance(data, str):
            self.fail("invalid")
        text: str = super().to_internal_value(data)
        return text


class Flag(serializers.BooleanField):
    """true or false; no "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        """The flag. Raises ValidationError."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Whole(serializers.IntegerField):
    """A whole number in ASCII digits; Python's int would also read "1.0" and the digits of other scripts."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ValidationError."""
        if isinstance(data, str) and not (data.isascii() and data.isdigit()):
            self.fail("invalid")
        number: int = super().to_internal_value(data)
        return number


class Amount(serializers.DecimalField):
    """An amount that is not negative, as decimal text or a whole number: never a fraction as a float
    (R-BUDGET-1). A number without a fraction is a whole one however JSON writes it."""

    def __init__(self, **more: Any) -> None:
        super().__init__(max_digits=24, decimal_places=9, min_value=0, **more)

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        """Whether nothing was given, and what stands for it: only null is none. The framework's own takes
        blank text for null too."""
        found: tuple[bool, Any] = serializers.Field.validate_empty_values(self, data)
        return found

    def to_internal_value(self, data: Any) -> Any:
        """The Decimal. Raises ValidationError."""
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        plain = isinstance(data, str) and AMOUNT.fullmatch(data) is not None
        if not plain and (isinstance(data, bool) or not isinstance(data, int)):
            self.fail("invalid")
        return super().to_internal_value(data)


class Exact(serializers.Serializer[Any]):
    """An input that knows all its fields: a misspelt limit must not be a silent one (R-SEC-7).

    `one_of` says in the document which sets of members there are, of which exactly one is given.
    """

    one_of: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def to_internal_value(self, data: Any) -> Any:
        """The typed values. Raises ValidationError naming each wrong or unknown field."""
        errors: dict[Any, Any] = {}
        value: Any = None
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(data, Mapping):
                raise
            errors = dict(error.detail) if isinstance(error.detail, dict) else {}
        for name in data:
            if name not in self.fields:
                errors[name] = [ErrorDetail("This field is not known.", code="unknown")]
        if errors:
            raise serializers.ValidationError(errors)
        return value


class ReasonBody(Exact):
    """Why."""

    reason = Text(max_length=500, required=False, allow_blank=True, default="")


class PageQuery(serializers.Serializer[Any]):
    """What every list takes: an opaque `cursor` from the page before, and how many rows at the most."""

    cursor = serializers.CharField(required=False)
    limit = Whole(required=False, min_value=1, max_value=LARGEST)


def page_of(row: type[serializers.Serializer[Any]], name: str) -> type[serializers.Serializer[Any]]:
    """The shape of a page of rows: {results, next, previous}. The cursor goes one way: previous is null."""
    fields = {
        "__doc__": "One page; `next` is the address of the page after it, or null.",
        "__module__": row.__module__,
        "results": row(many=True),
        "next": serializers.CharField(allow_null=True),
        "previous": serializers.CharField(allow_null=True),
    }
    return type(name, (serializers.Serializer,), fields)


def asked(shape: type[Row], given: Any) -> dict[str, Any]:
    """The typed values of a body or a query. Raises ValidationError (400)."""
    # A form may leave a field empty; an address that names a filter means it.
    read = shape(data=given.dict() if isinstance(given, QueryDict) else given)
    read.is_valid(raise_exception=True)
    return dict(read.validated_data)


def stamp(at: datetime | None) -> str | None:
    """A time as it is written."""
    return at.isoformat() if at is not None else None


def known(text: str | None) -> str:
    """A name from a path as it may be looked up. Raises NotFound for what no name can be."""
    if not text or len(text) > SENT:
        raise NotFound
    return text
