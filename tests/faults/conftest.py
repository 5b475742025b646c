"""Fixtures of the fault tests."""

from collections.abc import Iterator

import psycopg
import pytest
from pytest_django import Settings

from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.foreign import Obedient, called, foreign, onwards
from tests.factories.world import company_at, make_world
from tests.faults.cases import ASKED, READ, Case
from tests.journeys.interleaving.clock import Clock


@pytest.fixture
def case(
    request: pytest.FixtureRequest,
    house: House,
    company: Company,
    superuser: psycopg.Connection,
    settings: Settings,
) -> Iterator[Case]:
    """The run of the tool that the test's parameter `tool` names."""
    tool: str = request.node.callspec.params["tool"]
    server = Obedient(called(tool, **ASKED[tool][1]))
    with company_at(company.url), foreign(settings, server):
        world = make_world(house)
        run = world.submit("tool-loop", "Do what the model says, for a@b.example and the account refunds.")
        clock = Clock(superuser)
        found = Case(world=world, company=company, clock=clock, server=server, run=run, tool=tool)
        if tool == READ:
            found.dies("performed")  # the reply is lost, asked for again, and the look-up comes next
        else:
            onwards(world, run)
            (asked,) = world.open_requests(run)
            world.decide(asked, world.people.approver)
        yield found
