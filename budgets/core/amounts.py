"""Amounts per dimension: an immutable mapping in which an absent dimension is unknown, not zero."""

from collections.abc import ItemsView, Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Final, Self

from budgets.core.dimension import GAUGES, Dimension
from budgets.core.errors import AmountInvalid, DimensionUnknown
from traces.core.canonical import format_decimal

ZERO: Final = Decimal(0)
PLACES: Final = (
    12  # one token of the cheapest cached input costs some 1e-9 US$; a thousandth of that is still exact
)
LARGEST: Final = Decimal(10) ** 18
_QUANTUM: Final = Decimal(1).scaleb(-PLACES)
_AT: Final = tuple(Dimension)
_RANK: Final = {dimension: rank for rank, dimension in enumerate(_AT)}
# Precomputed: `value` of an enum member is a Python descriptor, which is slow to call on every access.
_NAME: Final = {dimension: dimension.value for dimension in Dimension}
_BY_NAME: Final[dict[str, Dimension]] = {dimension.value: dimension for dimension in Dimension}


def parse_dimension(name: str) -> Dimension:
    """Return the dimension called `name`.

    Raises: DimensionUnknown.
    """
    if (dimension := _BY_NAME.get(name)) is None:
        raise DimensionUnknown(dimension=name[:100])
    return dimension


def rounded_up(amount: Decimal) -> Decimal:
    """Round the amount up to the ledger's precision."""
    return amount.quantize(_QUANTUM, rounding=ROUND_CEILING)


def validate_amount(dimension: Dimension, amount: Decimal) -> Decimal:
    """Return `amount` if a line can hold it exactly.

    Raises: AmountInvalid if the amount is not finite, too large or too fine.
    """
    if amount.same_quantum(ZERO) and -LARGEST < amount < LARGEST:
        return amount  # a whole number, as most are
    if not amount.is_finite():
        raise AmountInvalid(dimension=dimension.value, amount=str(amount), rule="it is not finite")
    if abs(amount) >= LARGEST:
        raise AmountInvalid(dimension=dimension.value, amount=str(amount)[:40], rule="it is too large")
    exponent = amount.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -PLACES and amount != rounded_up(amount):
        raise AmountInvalid(dimension=dimension.value, amount=str(amount)[:40], rule="it is too fine")
    return amount


class Vector(Mapping[str, Decimal]):
    """Amounts per dimension, in the order of the dimensions. An absent amount is unknown.

    As a limit, an absent amount means unlimited. Arithmetic treats an unknown operand as zero; `get` still
    returns None for it.
    """

    __slots__ = ("_amounts",)
    _amounts: dict[Dimension, Decimal]

    @classmethod
    def of(cls, amounts: Mapping[str, Decimal | None]) -> "Vector":
        """Build a vector of the known amounts.

        Raises: DimensionUnknown, AmountInvalid.
        """
        if isinstance(amounts, Vector):
            return amounts
        known = {parse_dimension(name): amount for name, amount in amounts.items() if amount is not None}
        for dimension, amount in known.items():
            validate_amount(dimension, amount)
        return cls._from_amounts(known)

    @classmethod
    def _from_amounts(cls, known: dict[Dimension, Decimal]) -> Self:
        ranks = [*map(_RANK.__getitem__, known)]
        in_order = sorted(ranks)
        return cls._from_ordered(
            known if ranks == in_order else {one: known[one] for one in map(_AT.__getitem__, in_order)}
        )

    @classmethod
    def _from_ordered(cls, known: dict[Dimension, Decimal]) -> Self:
        """Build a vector from amounts that are already in the order of the dimensions."""
        vector = cls.__new__(cls)
        object.__setattr__(vector, "_amounts", known)
        return vector

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)

    def __getitem__(self, dimension: str) -> Decimal:
        return self._amounts[dimension]  # type: ignore[index]  # a StrEnum member is found by its text

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def items(self) -> ItemsView[Dimension, Decimal]:
        """Return the amounts by dimension, in order."""
        return self._amounts.items()

    def __hash__(self) -> int:
        return hash(tuple(self._amounts.items()))

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{dimension.value}={format_decimal(amount)}" for dimension, amount in self._amounts.items()
        )
        return f"Vector({inside})"

    def amount(self, dimension: Dimension) -> Decimal:
        """Return the amount, or zero if it is unknown. For sums only."""
        return self._amounts.get(dimension, ZERO)

    def plus(self, other: "Vector") -> "Vector":
        """Return the sum over the dimensions of both."""
        return self._add_signed(other, 1)

    def minus(self, other: "Vector") -> "Vector":
        """Return the difference over the dimensions of both; amounts may become negative."""
        return self._add_signed(other, -1)

    def _add_signed(self, other: "Vector", sign: int) -> "Vector":
        if not other:
            return self
        total = dict(self._amounts)
        for dimension, amount in other._amounts.items():  # noqa: SLF001 - another of this class
            total[dimension] = total.get(dimension, ZERO) + sign * amount
        return Vector._from_amounts(total)

    def with_upper_bound(self, upper: "Vector") -> "Vector":
        """Limit each amount to that of `upper`; where `upper` is unknown the amount is unchanged."""
        return Vector._from_ordered(
            {
                dimension: min(amount, upper.get(dimension, amount))
                for dimension, amount in self._amounts.items()
            }
        )

    def with_tighter_limits(self, other: "Vector") -> "Vector":
        """Combine two sets of limits: the smaller where both are known, else the known one."""
        merged: dict[Dimension, Decimal] = {
            dimension: other[dimension] for dimension in other
        } | self._amounts
        return Vector._from_amounts(merged).with_upper_bound(other)

    def above(self, floor: "Vector") -> "Vector":
        """Return the excess over `floor` per dimension; dimensions without excess are left out."""
        return Vector._from_ordered(
            {
                dimension: excess
                for dimension, amount in self._amounts.items()
                if (excess := amount - floor.amount(dimension)) > 0
            }
        )

    def nonzero(self) -> "Vector":
        """Return only the amounts that are not zero."""
        if all(self._amounts.values()):
            return self
        return Vector._from_ordered(
            {dimension: amount for dimension, amount in self._amounts.items() if amount}
        )

    def without_gauges(self) -> "Vector":
        """Return only the cumulative dimensions: gauges are compared at use and never booked."""
        if GAUGES.isdisjoint(self._amounts):
            return self
        return Vector._from_ordered(
            {dimension: amount for dimension, amount in self._amounts.items() if dimension not in GAUGES}
        )

    def select_bookable(self) -> "Vector":
        """Return the amounts to book on lines: the cumulative dimensions that are not zero."""
        return self.without_gauges().nonzero()

    def canonical(self) -> dict[str, str]:
        """Return dimension → plain decimal string, for hashing and storing."""
        return {_NAME[dimension]: format_decimal(amount) for dimension, amount in self._amounts.items()}

    @classmethod
    def read(cls, stored: Mapping[str, str]) -> "Vector":
        """Parse the vector whose canonical form is `stored`."""
        return cls.of({name: Decimal(amount) for name, amount in stored.items()})


NOTHING: Final = Vector.of({})
