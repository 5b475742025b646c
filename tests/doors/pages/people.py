"""A person at a page, and what outside text may never do there."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.tenancy import Somebody
from tests.factories.world import World, company_at, make_world

HOSTILE = "<script>alert(1)</script> \u202egnp.exe \x1b[31mred\u200b {{ 7|add:7 }} " + " " * 40 + "end"


@pytest.fixture
def world(house: House, company: Company) -> World:
    """A furnished house with the demo company beside it."""
    return make_world(house)


def at(who: Somebody) -> Client:
    """A signed-in person."""
    client = Client(headers={"accept": "text/html"})
    client.force_login(who.person)
    return client


def text(answer: Any) -> str:
    """The page's source, each line break with its indentation as one blank."""
    return join_lines(answer.content.decode())


def join_lines(source: str) -> str:
    """The source, each line break with its indentation as one blank."""
    return re.sub(r"\s*\n\s*", " ", source)


def alike(answer: Any, asked: UUID) -> str:
    """The page's source without what differs each time: the id that was asked for, and tokens."""
    return re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": "|nonce=")[^"]*', "", text(answer)).replace(
        str(asked), "ID"
    )


def refund(world: World, company: Company, *, whole: bool = False, **more: Any) -> UUID:
    """A refund that waits for its first decision, or has ended."""
    objective = more.pop("objective", "Refund order A-1001")
    inputs = {"order_id": "A-1001", **more}
    with company_at(company.url):
        run = world.submit("support-refund", objective, inputs=inputs)
        if whole:
            world.approve_all(run)
        else:
            world.drive(run)
    return run
