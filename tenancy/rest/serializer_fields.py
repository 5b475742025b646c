"""Fields and serializers that all API views share: strict inputs, and pages.

Whatever these fields reject, the OpenAPI document rejects too, and vice versa: config/api/openapi.py derives
the document from these fields. Where a pydantic model validates a body, its JSON Schema is used for both
(tenancy/db/model_schema.py).
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.http import QueryDict
from pydantic import BaseModel
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ParseError

from tenancy.core.amounts import amount_pattern
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.timestamps import read_moment
from tenancy.db.model_schema import Fault, faults_in, member_fault

Row = TypeVar("Row", bound=serializers.Serializer[Any])
SENT = 400
LARGEST = 200
AMOUNT = re.compile(amount_pattern(), re.ASCII)
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
# Years in which every UTC offset gives a valid year again, and no second 60.
MOMENT = (
    r"^([1-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-[0-9]{2}-[0-9]{2}[Tt]"
    r"[0-9]{2}:[0-9]{2}:[0-5][0-9](\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
URL = r"^https?://[!$-;=?-\[\]_a-z~]{1,1990}$"
CURSOR = r"^[A-Za-z0-9_-]{1,400}$"


class StrictCharField(serializers.CharField):
    """A text field without coercion: 5 is not "5"."""

    def to_internal_value(self, data: Any) -> str:
        """Return the text.

        Raises: ValidationError.
        """
        if not isinstance(data, str):
            self.fail("invalid")
        if self.max_length is not None and len(data) > self.max_length:
            # Checked before trimming: the document counts the characters that were sent.
            self.fail("max_length", max_length=self.max_length)
        text: str = super().to_internal_value(data)
        return text


class FormattedCharField(StrictCharField):
    """A text of one format, such as a name, that is never trimmed.

    `form` is a pattern of the whole text that has the same meaning in Python and in JSON Schema.
    """

    default_error_messages = {"form": "This does not have the form that is asked for: {form}"}

    def __init__(self, form: str, **more: Any) -> None:
        self.form = form
        self._form = re.compile(form, re.ASCII)
        empty = self._form.fullmatch("") is not None
        super().__init__(trim_whitespace=False, allow_blank=empty, **more)

    def to_internal_value(self, data: Any) -> str:
        """Return the text.

        Raises: ValidationError.
        """
        text = super().to_internal_value(data)
        if self._form.fullmatch(text) is None:
            self.fail("form", form=self.form)
        return text


class Cursor(FormattedCharField):
    """The cursor of a page. The error is the same for a malformed cursor and for an unknown one."""

    def __init__(self, form: str = CURSOR, **more: Any) -> None:
        super().__init__(form, **more)

    def to_internal_value(self, data: Any) -> str:
        """Return the text.

        Raises: ParseError.
        """
        try:
            return super().to_internal_value(data)
        except serializers.ValidationError:
            raise ParseError("The cursor is not one of ours.", "cursor-invalid") from None


class Id(serializers.UUIDField):
    """A UUID in its canonical form; the framework's own field also accepts numbers, braces and URNs."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the UUID.

        Raises: ValidationError.
        """
        if not isinstance(data, str) or UUID_TEXT.fullmatch(data) is None:
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class Moment(serializers.DateTimeField):
    """A time in RFC 3339 format, with its offset from UTC."""

    def to_internal_value(self, value: Any) -> datetime:
        """Return the time in UTC.

        Raises: ValidationError.
        """
        if isinstance(value, str) and re.fullmatch(MOMENT, value, re.ASCII) is not None:
            try:
                return read_moment(value.upper())
            except ValueError:
                pass
        self.fail("invalid", format="RFC 3339, such as 2026-01-31T12:00:00Z")
        raise AssertionError


class PydanticField(serializers.Field[Any, Any, Any, Any]):
    """A member that a pydantic model is made of.

    The member is validated by the JSON Schema of the model, which the OpenAPI document shows, and passed on
    unchanged.
    """

    def __init__(self, model: type[BaseModel], **more: Any) -> None:
        super().__init__(**more)
        self.model = model

    def to_internal_value(self, data: Any) -> Any:
        """Return the value unchanged.

        Raises: ValidationError, which names each wrong or unknown member.
        """
        found: dict[Any, Any] = {}
        for fault in faults_in(self.model, data):
            _add_field_fault(found, fault)
        if found:
            raise serializers.ValidationError(found)
        return data

    def to_representation(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


def _add_field_fault(found: dict[Any, Any], fault: Fault) -> None:
    """Insert a fault at its place in the errors of a value.

    Errors of an object precede those of its members.
    """
    within = found
    for part in fault.path:
        within = within.setdefault(part, {})
    within.setdefault("non_field_errors", []).append(ErrorDetail(fault.detail, code=fault.code))


class StrictBooleanField(serializers.BooleanField):
    """A Boolean field that accepts only true and false, not "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        """Return the flag.

        Raises: ValidationError.
        """
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictIntegerField(serializers.IntegerField):
    """A whole number in ASCII digits; Python's int would also accept "1.0" and digits of other scripts."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number.

        Raises: ValidationError.
        """
        if isinstance(data, str) and not (data.isascii() and data.isdigit()):
            self.fail("invalid")
        number: int = super().to_internal_value(data)
        return number


class Amount(serializers.DecimalField):
    """A non-negative amount, as decimal text or a whole number; never a fraction as a float (R-BUDGET-1).

    A number without a fraction is a whole number, however JSON writes it.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(max_digits=24, decimal_places=9, min_value=0, **more)

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        """Return whether the value is empty, and its replacement; only null is empty.

        The framework's own method also takes blank text for null.
        """
        found: tuple[bool, Any] = serializers.Field.validate_empty_values(self, data)
        return found

    def to_internal_value(self, data: Any) -> Any:
        """Return the Decimal.

        Raises: ValidationError.
        """
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        plain = isinstance(data, str) and AMOUNT.fullmatch(data) is not None
        if not plain and (isinstance(data, bool) or not isinstance(data, int)):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictSerializer(serializers.Serializer[Any]):
    """An input that knows all its fields: a misspelt limit must not be a silent one (R-SEC-7).

    `one_of` says in the document which sets of members there are, of which exactly one is given. `judged_by`
    is the pydantic model that the members go into: those that have the name of a member of the model are
    judged by its schema too, as they were sent.
    """

    one_of: ClassVar[tuple[tuple[str, ...], ...]] = ()
    judged_by: ClassVar[type[BaseModel] | None] = None

    def to_internal_value(self, data: Any) -> Any:
        """Return the typed values.

        Raises: ValidationError, which names each wrong or unknown field.
        """
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
            elif name not in errors and (fault := self._fault(name, data[name])) is not None:
                errors[name] = [ErrorDetail(fault, code="invalid")]
        if errors:
            raise serializers.ValidationError(errors)
        return value

    def _fault(self, name: str, given: Any) -> str | None:
        """Return the error of one member according to `judged_by`, or None."""
        model = self.judged_by
        if model is None or name not in model.model_fields or given is None:
            return None
        return member_fault(model, name, given)


class ReasonBody(StrictSerializer):
    """Why."""

    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class PageQuery(StrictSerializer):
    """What every list takes: an opaque `cursor` from the page before, and how many rows at the most."""

    cursor = Cursor(required=False)
    limit = StrictIntegerField(required=False, min_value=1, max_value=LARGEST)


def page_of(row: type[serializers.Serializer[Any]], name: str) -> type[serializers.Serializer[Any]]:
    """Build the serializer of a page of rows: {results, next, previous}.

    The cursor only goes forward: `previous` is null.
    """
    fields = {
        "__doc__": "One page; `next` is the address of the page after it, or null.",
        "__module__": row.__module__,
        "results": row(many=True),
        "next": serializers.CharField(allow_null=True),
        "previous": serializers.CharField(allow_null=True),
    }
    return type(name, (serializers.Serializer,), fields)


def validate_input(shape: type[Row], given: Any) -> dict[str, Any]:
    """Return the typed values of a body or a query.

    Raises: ValidationError (400).
    """
    # An empty field is allowed in a form, but a query parameter that is present counts as given.
    data = given.dict() if isinstance(given, QueryDict) else given
    read = shape(data=data)
    if not read.is_valid():
        read = shape(data=data)
        for field in read.fields.values():
            _name_choices(field)
        read.is_valid(raise_exception=True)
    return dict(read.validated_data)


def _name_choices(field: serializers.Field[Any, Any, Any, Any]) -> None:
    """Make the error message of a choice field list the valid choices."""
    if isinstance(field, serializers.ChoiceField):
        names = ", ".join(map(str, field.choices))
        field.error_messages["invalid_choice"] = f'"{{input}}" is not a valid choice. Send one of: {names}.'
    for inner in (getattr(field, "child", None), *getattr(field, "fields", {}).values()):
        if inner is not None:
            _name_choices(inner)


@contextmanager
def faults_within(member: str) -> Iterator[None]:
    """Prefix the pointers of an action's input errors with the name of a body member.

    `/reason` is not prefixed, because the reason is a sibling of the member.

    Raises: InvalidInput.
    """
    try:
        yield
    except InvalidInput as error:
        whole = [
            one if one["pointer"] == "/reason" else {**one, "pointer": f"/{member}{one['pointer']}"}
            for one in error.data["errors"]
        ]
        raise InvalidInput(errors=whole) from None


def format_timestamp(at: datetime | None) -> str | None:
    """Return a time in ISO 8601 format, or None."""
    return at.isoformat() if at is not None else None


def path_name(text: str | None) -> str:
    """Return a name from a path, ready for a look-up.

    Raises: NotFound for a text that cannot be a name.
    """
    if not text or len(text) > SENT:
        raise NotFound
    return text
