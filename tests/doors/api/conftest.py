"""A furnished tenant and its programs."""

import pytest

from tenancy.core.roles import Role
from tests.conftest import House
from tests.doors.api.program import Program, program
from tests.factories.world import World, make_world


@pytest.fixture
def world(house: House) -> World:
    """A furnished house whose tools need no company."""
    return make_world(house)


@pytest.fixture
def client_program(world: World) -> Program:
    """Submits and reads."""
    return program(world.id, Role.CLIENT)


@pytest.fixture
def operator(world: World) -> Program:
    """Submits, reads and operates."""
    return program(world.id, Role.OPERATOR)


@pytest.fixture
def auditor(world: World) -> Program:
    """Only reads."""
    return program(world.id, Role.AUDITOR)
