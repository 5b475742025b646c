"""Transactions that may find their plans given up by an earlier rollback of the same connection."""

from collections.abc import Callable
from typing import TypeVar

from tenancy.db.pipeline import PreparedStatementsLost

T = TypeVar("T")


def with_plans(transaction: Callable[[], T]) -> T:
    """The answer of a transaction, made again if it found that its plans are gone, as a commit does."""
    try:
        return transaction()
    except PreparedStatementsLost:
        return transaction()
