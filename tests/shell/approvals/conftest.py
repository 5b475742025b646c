"""A desk where people are asked, without a run behind it."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest

from approvals.actions.undo import take_effect
from approvals.models import Request
from tests.conftest import House
from tests.factories.approvals import Desk, open_desk
from tests.factories.undoing import let_undo, pass_time

Later = Callable[[Request], timedelta | None]


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk."""
    with open_desk(house) as opened:
        yield opened


@pytest.fixture
def lenient(desk: Desk) -> Desk:
    """A desk where a yes can be taken back for ten seconds."""
    let_undo(desk.id, desk.house.people.admin)
    return desk


@pytest.fixture
def later(superuser: psycopg.Connection) -> Later:
    """Ten seconds go by, and somebody looks."""

    def look(request: Request) -> timedelta | None:
        pass_time(superuser, request)
        return take_effect(request.tenant_id, request.run_id)

    return look
