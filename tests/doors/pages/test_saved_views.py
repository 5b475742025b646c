"""Views of one's own on the list of runs: kept, opened, renamed, removed, one of them first (R-UI-2)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from orchestrator.runs.actions.saved_views import MOST, open_first, save_view
from orchestrator.runs.models.saved_view import SavedView
from orchestrator.runs.queries.run_list import Filters
from orchestrator.runs.queries.saved_views import views_of
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.pages.forms import form_with, forms_of
from tests.doors.pages.people import at, text
from tests.proves import proves

VIEWS, DEAR = "/runs/views", "/runs?view=problems&tool=payments.refund&cost__gt=1"


@pytest.fixture
def who(house: House) -> Client:
    """The operator, signed in."""
    return at(house.people.operator)


def keep(who: Client, name: str, address: str = DEAR, **more: str) -> Any:
    """Keep the filters of an address by the form that the list leads to."""
    query = address.partition("?")[2]
    form = next(form for form in forms_of(who.get(f"{VIEWS}?{query}")) if "query" in form.fields)
    return who.post(form.action, {**form.fields, "name": name, **more})


def form_of(who: Client, act: str) -> Any:
    """The form on the page of views whose button says this."""
    return form_with(who.get(VIEWS), act)


@proves("R-UI-2", part="saved views")
def test_filters_are_kept_under_a_name_and_opened_by_it(who: Client) -> None:
    assert f'href="{VIEWS}?view=problems&amp;cost__gt=1&amp;tool=payments.refund"' in text(who.get(DEAR))
    answer = keep(who, " Dear refunds ")
    assert answer["Location"] == "/runs?view=problems&cost__gt=1&tool=payments.refund"
    page = text(who.get(answer["Location"]))
    assert "The view is kept." in page
    assert 'aria-current="page"><bdi class="hostile">Dear refunds</bdi>' in page
    assert f'href="{VIEWS}"' in page
    assert "Problems · cost over $ 1 · called payments.refund" in text(who.get(VIEWS))
    assert who.get("/palette?q=").json()["results"] == [
        {"text": "View Dear refunds", "detail": "", "url": answer["Location"]}
    ]


def test_a_name_that_the_index_takes_for_another_is_refused(who: Client) -> None:
    keep(who, "k")
    assert keep(who, "\u212a").status_code in (409, 422)


def test_a_view_is_renamed_and_removed(who: Client) -> None:
    keep(who, "Old")
    rename = next(form for form in forms_of(who.get(VIEWS)) if form.fields.get("name") == "Old")
    assert rename.send(who, "", name="New").status_code == 302
    assert "New" in text(who.get("/runs"))
    assert form_of(who, "remove").send(who, "remove").status_code == 302
    page = text(who.get(VIEWS))
    assert "The view is removed. The runs stay." in page
    assert "No view yet" in page


@proves("R-UI-2", part="the view that opens first")
def test_one_view_is_first_and_all_runs_can_still_be_asked_for(who: Client) -> None:
    keep(who, "One", "/runs?view=needs", first="on")
    keep(who, "Two", "/runs?view=active", first="on")
    assert who.get("/runs")["Location"] == "/runs?view=active"
    page = text(who.get("/runs", follow=True))
    assert 'href="/runs?view=all"' in page
    assert who.get("/runs?view=all").status_code == 200
    form_of(who, "first").send(who, "first")
    assert who.get("/runs")["Location"] == "/runs?view=needs"
    form_of(who, "last").send(who, "last")
    assert who.get("/runs").status_code == 200


@pytest.mark.parametrize(
    ("name", "address", "why"),
    [
        ("", DEAR, "One line"),
        ("x" * 61, DEAR, "One line"),
        ("a\u202eb", DEAR, "One line"),
        ("a\nb", DEAR, "One line"),
        ("TAKEN", DEAR, "another view under this name"),
        ("Long", "/runs?q=" + "%D9%A9" * 200 + "&tool=" + "%D9%A9" * 200, "longer than"),
    ],
)
def test_what_does_not_fit_is_said_beside_what_was_typed(
    who: Client, name: str, address: str, why: str
) -> None:
    keep(who, "Taken")
    answer = keep(who, name, address, first="on")
    assert answer.status_code == 422
    assert why in text(answer)
    assert 'name="first" checked' in text(answer)


def test_all_runs_are_no_view_and_nonsense_is_none(who: Client) -> None:
    for query in ("", "view=all", "status=asleep", "%00", "cost__gt=1e-20000"):
        answer = who.post(VIEWS, {"name": "All", "query": query})
        assert answer.status_code == 422
        assert "These are all runs" in text(answer)


def test_a_name_that_is_taken_refuses_a_renaming_and_its_own_does_not(who: Client) -> None:
    keep(who, "One")
    keep(who, "Two", "/runs?view=needs")
    two = next(form for form in forms_of(who.get(VIEWS)) if form.fields.get("name") == "Two")
    assert two.send(who, "", name="one").status_code == 422
    assert two.send(who, "", name="two").status_code == 302


def test_there_is_an_end_of_views(house: House, who: Client) -> None:
    for number in range(MOST):
        save_view(house.tenant.id, Filters(view="needs"), name=f"View {number}", by=house.people.operator.id)
    assert f"You keep {MOST} views already" in text(keep(who, "One more"))


@proves("R-SEC-1", part="a view is its keeper's own")
def test_a_colleague_neither_sees_nor_changes_a_view(house: House, who: Client) -> None:
    keep(who, "Private", first="on")
    colleague = at(house.people.admin)
    assert "Private" not in text(colleague.get("/runs")) + text(colleague.get(VIEWS))
    assert colleague.get("/palette?q=").json() == {"results": []}
    with tenant_transaction(house.tenant.id):
        view = views_of(house.people.operator.id).get()
    for act in ("remove", "first", "last", "rename"):
        assert colleague.post(f"{VIEWS}/{view.id}", {"act": act, "name": "Mine"}).status_code == 404
    with tenant_transaction(house.tenant.id):
        assert views_of(house.people.operator.id).get().name == "Private"


def test_two_windows_make_one_first(house: House) -> None:
    mine = house.people.operator.id
    views = [save_view(house.tenant.id, Filters(view="needs"), name=name, by=mine) for name in ("a", "b")]

    def first(view: SavedView) -> None:
        try:
            for _ in range(5):
                open_first(house.tenant.id, view.id, first=True, by=mine)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(first, views))
    with tenant_transaction(house.tenant.id):
        assert views_of(mine).filter(first=True).count() == 1
