"""Who looks at pages, and a desk whose requests they decide there."""

from collections.abc import Iterator

import pytest
from allauth.mfa.totp.internal import auth
from django.test import Client

from tests.conftest import House
from tests.doors.pages.people import at
from tests.doubles.company import Company
from tests.factories.approvals import Desk, open_desk
from tests.factories.world import World, company_at, make_world


@pytest.fixture
def admin(world: World) -> Client:
    """The browser of somebody who may set up the tenant."""
    return at(world.people.admin)


@pytest.fixture
def code_counter(monkeypatch: pytest.MonkeyPatch) -> int:
    """Hold the clock of one-time codes: a half minute may end between a code's making and its use."""
    counter: int = next(auth.yield_hotp_counters_from_time())
    monkeypatch.setattr(auth, "yield_hotp_counters_from_time", lambda: iter([counter]))
    return counter


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        yield opened


@pytest.fixture
def company_world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)
