"""The queues of a tenant, as whatever names one is checked against them. Inside the tenant's context."""

from collections.abc import Collection, Iterable
from typing import Any

from tenancy.core.errors import InvalidInput
from tenancy.core.queues import unknown_queue_sentence
from tenancy.core.roles import EVERY_QUEUE
from tenancy.models import Queue


def list_unknown_queues(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that no open queue has. The queues found stay open until the transaction
    ends: whoever closes one waits, and then finds what names it."""
    wanted = tuple(dict.fromkeys(names))
    if not wanted:
        return ()
    # No key of theirs is changed, so a request that refers to one of them waits for nobody.
    found = Queue.objects.select_for_update(no_key=True).filter(name__in=wanted, closed_at=None)
    known = set(found.order_by("name").values_list("name", flat=True))
    return tuple(name for name in wanted if name not in known)


def open_queues() -> frozenset[str]:
    """Return the names of the tenant's open queues."""
    return frozenset(Queue.objects.filter(closed_at=None).values_list("name", flat=True))


def hold_open_queues() -> None:
    """Keep every open queue open until the transaction ends: whoever closes one waits, and then finds what
    names it."""
    locked = Queue.objects.select_for_update(no_key=True).filter(closed_at=None).order_by("name")
    list(locked.values_list("name", flat=True))


def check_queues(pointers: Collection[tuple[str, str]]) -> None:
    """Raises InvalidInput for each (pointer, name) that is no open queue of the tenant."""
    unknown = set(list_unknown_queues(name for _, name in pointers))
    if faults := [fault_of_queue(pointer, name) for pointer, name in pointers if name in unknown]:
        raise InvalidInput(errors=faults)


def check_member_queues(queues: tuple[str, ...]) -> None:
    """Raises InvalidInput for a name in a membership that is neither an open queue nor `*` alone."""
    if queues != EVERY_QUEUE:
        check_queues([(f"/queues/{place}", name) for place, name in enumerate(queues)])


def fault_of_queue(pointer: str, name: str) -> dict[str, Any]:
    """The fault of naming a queue that is not there, with what to do about it."""
    return {"pointer": pointer, "code": "unknown-queue", "detail": unknown_queue_sentence(name)}
