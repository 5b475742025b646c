"""A furnished tenant, a broker, and a server that follows."""

from collections.abc import Iterator

import pytest

from config.devstack.embedded import EmbeddedValkey
from tenancy.core.roles import Role
from tests.conftest import House
from tests.doors.api.program import Program, program
from tests.doors.live.serving import Serving, serving
from tests.factories.announcing import announced
from tests.factories.world import World


@pytest.fixture(scope="module")
def broker(valkey: EmbeddedValkey) -> Iterator[EmbeddedValkey]:
    """The channel layer of this process leads to its own Valkey."""
    with announced(valkey):
        yield valkey


@pytest.fixture
def reader(world: World) -> Program:
    """A key that only reads."""
    return program(world.id, Role.AUDITOR)


@pytest.fixture
def site(house: House, broker: EmbeddedValkey) -> Iterator[Serving]:
    """The house, served."""
    with serving() as served:
        yield served
