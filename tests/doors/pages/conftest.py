"""Who looks at pages, and a desk whose requests they decide there."""

from collections.abc import Iterator

import pytest
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
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        yield opened


@pytest.fixture
def company_world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)
