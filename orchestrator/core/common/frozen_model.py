"""The base of every value of the core: frozen, closed, changed only by making another."""

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints

K = TypeVar("K")
V = TypeVar("V")

Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
Text = Annotated[str, StringConstraints(max_length=20_000)]
Small = str | int | bool | None
_NEW, _PUT = object.__new__, object.__setattr__


class FrozenModel(BaseModel):
    """A frozen value that refuses unknown fields; `evolve` makes a changed copy without validating it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with `changes`; mypy checks their types (tests/architecture/evolve_plugin.py).

        Raises: TypeError for a name that is no field of this value.
        """
        if not changes.keys() <= self.__pydantic_fields__.keys():
            unknown = sorted(changes.keys() - self.__pydantic_fields__.keys())
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}")
        changed = _NEW(type(self))
        given = self.__pydantic_fields_set__
        # What pydantic's own model_copy does, without copying twice: states are made several times a
        # transition. Nobody changes the names of a frozen value, so two may share them.
        _PUT(changed, "__dict__", {**self.__dict__, **changes})
        _PUT(changed, "__pydantic_fields_set__", given if given >= changes.keys() else given | changes.keys())
        _PUT(changed, "__pydantic_extra__", None)
        _PUT(changed, "__pydantic_private__", None)
        return changed


def with_entry(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """The mapping with one entry set."""
    return {**mapping, key: value}


def without_keys(mapping: Mapping[K, V], *keys: K) -> Mapping[K, V]:
    """The mapping without `keys`."""
    return {key: value for key, value in mapping.items() if key not in keys}
