"""The measurement of pages leaves none out."""

from uuid import UUID

import pytest
from django.urls import resolve

from bench import page_urls
from tests.doors.pages.test_every_page import EVERY, nothing
from tests.proves import proves

RUN, ASKED = UUID(int=1), UUID(int=2)


@proves("R-UI-12", part="every page of the console is measured")
def test_whatever_has_a_page_is_measured_and_nothing_twice() -> None:
    found = page_urls.everywhere(RUN, ASKED, nothing(), lambda _: b"<!DOCTYPE html><html>")
    assert {resolve(path.partition("?")[0]).route for path in found.values()} == set(EVERY)
    assert len(set(found.values())) == len(found)
    assert {"tools/<str:name>", "destinations", "models", "policy", "system"} <= set(found)


@pytest.mark.parametrize("body", [None, b"id,amount\n", b"<li>a fragment</li>"])
def test_what_is_no_page_is_not_measured(body: bytes | None) -> None:
    found = page_urls.everywhere(RUN, ASKED, nothing(), lambda _: body)
    assert found == page_urls.states(RUN, ASKED)
