"""`{% load people %}`: who a principal is."""

from collections.abc import Mapping
from uuid import UUID

from django import template

register = template.Library()


@register.filter
def called(names: Mapping[UUID, str], principal: UUID | None) -> str:
    """A principal's name; "the system" where nobody acted, "somebody who is gone" where none is known."""
    if principal is None:
        return "the system"
    return names.get(principal, "somebody who is gone")


@register.filter
def object_called(names: Mapping[str, str], told: str) -> str:
    """An object of the audit log by its name, "key: Nightly reports"; as it stands where none is known."""
    return f"{told.partition(':')[0]}: {names[told]}" if names.get(told) else told
