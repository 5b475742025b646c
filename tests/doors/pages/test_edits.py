"""Edits on pages: what a refused one keeps, and what a settled card shows of it."""

from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import form_with
from tests.doors.pages.test_deciding import at_the_gate, card, edited
from tests.factories.world import World
from tests.proves import proves


@proves("R-UI-4", part="a refused edit keeps its difference and what was typed")
def test_a_wrong_amount_beside_an_edit_comes_back_with_its_difference(company_world: World) -> None:
    _, request = at_the_gate(company_world)
    client, review = edited(company_world.people.approver, request, {"f:/amount": "10.00"})
    answer = form_with(review, "edit").send(client, "edit", typed="11")
    assert answer.status_code == 422
    again = form_with(answer, "edit")
    assert (again.fields["typed"], again.fields["f:/amount"]) == ("11", "10.00")
    assert "type the amount exactly: 10.00" in words(answer)
    assert "What you change" in words(answer)
    assert again.send(client, "edit", typed="10").status_code == 302


@proves("R-APPR-5", part="a refused agreement keeps what was typed")
def test_a_wrong_amount_beside_another_s_edit_stays_in_its_own_form(company_world: World) -> None:
    people = company_world.people
    _, request = at_the_gate(company_world, "A-1003")
    client, review = edited(people.approver, request, {"f:/amount": "250.00"})
    form_with(review, "edit").send(client, "edit", typed="250")
    second, page = card(people.second_approver, request)
    answer = form_with(page, "edit").send(second, "edit", typed="25")
    assert answer.status_code == 422
    again, own = form_with(answer, "edit"), form_with(answer, "approve")
    assert (again.fields["agree"], again.fields["typed"], own.fields["typed"]) == (
        form_with(page, "edit").fields["agree"], "25", "",
    )  # fmt: skip
    source = answer.content.decode()
    assert source.count('aria-invalid="true"') == 1
    assert '<details class="panel" open>' not in source
    assert again.send(second, "edit", typed="250.00").status_code == 302


@proves("R-APPR-3", part="a settled card shows what was asked and what was approved")
def test_after_an_edit_the_card_shows_what_was_asked_and_what_was_approved(company_world: World) -> None:
    people = company_world.people
    _, request = at_the_gate(company_world)
    client, review = edited(people.approver, request, {"f:/amount": "10.00"})
    form_with(review, "edit").send(client, "edit", typed="10")
    said = words(browser(people.auditor).get(f"/approvals/{request.id}"))
    assert "Argument Was asked Was approved /amount 129.90 10.00" in said
    assert "1 agreed to what was approved" in said
    assert "would be sent" not in said


def test_a_word_for_other_arguments_counts_apart_while_it_waits(company_world: World) -> None:
    people = company_world.people
    _, request = at_the_gate(company_world, "A-1003")
    client, review = edited(people.approver, request, {"f:/amount": "250.00"})
    form_with(review, "edit").send(client, "edit", typed="250")
    said = words(browser(people.auditor).get(f"/approvals/{request.id}"))
    assert "0 of 2 agreed, 1 to other arguments" in said
