"""A furnished tenant and its programs."""

import pytest

from tenancy.core.roles import Role
from tests.doors.api.program import Program, program
from tests.factories.world import World


@pytest.fixture
def client_program(world: World) -> Program:
    """Submits and reads."""
    return program(world.id, Role.CLIENT)


@pytest.fixture
def operator(world: World) -> Program:
    """Submits, reads and operates."""
    return program(world.id, Role.OPERATOR)


@pytest.fixture
def admin(world: World) -> Program:
    """Sets up the tenant."""
    return program(world.id, Role.ADMIN)


@pytest.fixture
def auditor(world: World) -> Program:
    """Only reads."""
    return program(world.id, Role.AUDITOR)
