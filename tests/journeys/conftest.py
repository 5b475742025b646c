"""What most journeys begin with."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer
from tests.factories.foreign import foreign
from tests.factories.world import World, company_at, make_world


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


@pytest.fixture
def server(settings: Settings) -> Iterator[OpenAIServer]:
    """The only model."""
    with foreign(settings, OpenAIServer()) as server:
        yield server
