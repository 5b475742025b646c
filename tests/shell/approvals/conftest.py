"""A desk where people are asked, without a run behind it."""

from collections.abc import Iterator

import pytest

from tests.conftest import House
from tests.factories.approvals import Desk, open_desk


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk."""
    with open_desk(house) as opened:
        yield opened
