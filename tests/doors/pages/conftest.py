"""A desk whose requests people decide on pages."""

from collections.abc import Iterator

import pytest

from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.approvals import Desk, open_desk
from tests.factories.world import World, company_at, make_world


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
