"""The page that begins an ended run again: without a script, with every refusal in its place."""

import re
from uuid import UUID

import pytest

from orchestrator import bundled_content
from orchestrator.publishing.actions.versions import publish_workflow
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.browsers import words
from tests.doors.pages.people import at, refund, text
from tests.doubles.company import Company
from tests.factories.retrying import retried
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


@pytest.fixture
def ended(world: World) -> UUID:
    """A run that somebody stopped."""
    run = world.submit("tool-loop", SUM)
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    assert world.drive(run).terminal_code == "USER_CANCEL"
    return run


def retries(world: World) -> list[UUID]:
    """The retries there are."""
    with tenant_transaction(world.id):
        return list(Run.objects.exclude(retry_of=None).values_list("id", flat=True))


@proves("R-UI-3", part="retry from a point of its past")
@proves("R-SESS-9", part="retry by an operator")
def test_an_operator_retries_a_run_from_its_page(world: World, ended: UUID) -> None:
    who = at(world.people.operator)
    assert f'href="/runs/{ended}/retry"' in text(who.get(f"/runs/{ended}"))
    form = who.get(f"/runs/{ended}/retry")
    source = text(form)
    assert "Looks at the goal" in text(form)
    records = re.findall(r'name="record" value="(\d+)"( checked)?', source)
    assert records[0][1] == " checked"
    assert records[-1][0] == "0"
    answer = who.post(f"/runs/{ended}/retry", {"record": "0", "reason": "The model is back."})
    (again,) = retries(world)
    assert answer["Location"] == f"/runs/{again}"
    assert f"Retry of {str(ended)[-8:]} from record 0, begun by" in words(who.get(f"/runs/{again}"))
    before = who.get(f"/runs/{ended}")
    assert f"Retried as {str(again)[-8:]}" in words(before)
    assert f"/runs/{ended}/retry" not in text(before)
    assert "The model is back." in text(who.get(f"/runs/{again}?rows=each"))
    audit = words(who.get(f"/runs/{again}?tab=audit"))
    assert f"had it begun again, after record 0 of run {str(ended)[-8:]}" in audit
    assert "submitted the task" not in audit


@proves("R-UI-3", part="retry from a point of its past")
def test_who_clicks_twice_has_one_retry(world: World, ended: UUID) -> None:
    who = at(world.people.operator)
    found = re.search(r'name="key" value="([^"]+)"', text(who.get(f"/runs/{ended}/retry")))
    assert found is not None
    sent = {"record": "0", "reason": "Again.", "key": found[1]}
    first, second = (who.post(f"/runs/{ended}/retry", sent) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert len(retries(world)) == 1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"record": "0"}, "Say why"),
        ({"reason": "Again."}, "Choose after which record"),
        ({"record": "-1", "reason": "Again."}, "Choose after which record"),
        ({"record": "9" * 40, "reason": "Again."}, "Choose after which record"),
    ],
)
def test_what_is_missing_is_said_at_its_field(
    world: World, ended: UUID, sent: dict[str, str], said: str
) -> None:
    answer = at(world.people.operator).post(f"/runs/{ended}/retry", sent)
    assert answer.status_code == 422
    assert said in text(answer)
    assert sent.get("reason", "") in text(answer)
    assert retries(world) == []


@proves("R-UI-3", part="retry from a point of its past")
def test_a_refusal_stands_in_its_place(world: World, ended: UUID) -> None:
    who = at(world.people.operator)
    last = world.run(ended).record_number
    answer = who.post(f"/runs/{ended}/retry", {"record": str(last), "reason": "Again."})
    assert answer.status_code == 409
    assert "No retry can begin there" in text(answer)
    assert 'value="Again."' in text(answer)
    assert retries(world) == []
    again = retried(world, ended)
    shown = who.get(f"/runs/{ended}/retry")
    assert f"/runs/{again}" in text(shown)
    assert 'name="record"' not in text(shown)


@proves("R-UI-3", part="retry from a point of its past")
def test_after_a_refusal_nothing_else_is_chosen(
    world: World, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = refund(world, company)
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    world.drive(run)
    monkeypatch.setattr("orchestrator.runs.views.run_retry.SHOWN", 2)
    who, page = at(world.people.operator), f"/runs/{run}/retry"
    newest = offered(text(who.get(page)))
    older = f"{page}?below={newest[-1][0]}"
    shown = offered(text(who.get(older)))
    assert [checked for _, checked in (*newest, *shown)] == [" checked", "", " checked", ""]
    # The one that was chosen stays so, on the page where it stands.
    answer = who.post(older, {"record": shown[1][0], "reason": ""})
    assert answer.status_code == 422
    assert offered(text(answer)) == [(shown[0][0], ""), (shown[1][0], " checked")]
    # On another page nothing is chosen in its place.
    assert {checked for _, checked in offered(text(who.post(page, {"record": shown[1][0]})))} == {""}
    assert retries(world) == []


def offered(source: str) -> list[tuple[str, str]]:
    """The records that a page offers, and which is chosen."""
    return re.findall(r'name="record" value="(\d+)"( checked)?', source)


@proves("W2", part="NUL in a form")
def test_a_nul_in_a_form_is_400_and_begins_nothing(world: World, ended: UUID) -> None:
    who = at(world.people.operator)
    assert who.post(f"/runs/{ended}/retry", {"record": "0", "reason": "a\x00b"}).status_code == 400
    assert retries(world) == []


def test_a_run_under_way_and_one_with_its_result_offer_no_retry(world: World) -> None:
    who = at(world.people.operator)
    run = world.submit("tool-loop", SUM)
    for _ in range(2):
        assert "/retry" not in text(who.get(f"/runs/{run}"))
        assert who.get(f"/runs/{run}/retry").status_code == 200
        assert who.post(f"/runs/{run}/retry", {"record": "0", "reason": "Again."}).status_code == 409
        world.drive(run)
    assert retries(world) == []


@proves("R-SEC-2", part="a retry takes two scopes")
def test_whoever_may_not_is_offered_nothing(world: World, ended: UUID) -> None:
    for who in (at(world.people.auditor), at(world.people.approver)):
        assert "/retry" not in text(who.get(f"/runs/{ended}"))
        assert who.get(f"/runs/{ended}/retry").status_code == 403
        assert who.post(f"/runs/{ended}/retry", {"record": "0", "reason": "x"}).status_code == 403
    assert retries(world) == []


@proves("R-SESS-9", part="the version of its own")
def test_the_page_says_that_a_retry_goes_by_an_older_version(world: World, ended: UUID) -> None:
    who = at(world.people.operator)
    sentence = "It goes by version 1 of its workflow; version 2 is the newest."
    assert "is the newest" not in words(who.get(f"/runs/{ended}/retry"))
    spec = bundled_content.load_bundled_workflows()["tool-loop"]
    with tenant_transaction(world.id):
        publish_workflow(world.id, spec.evolve(budget={"tool_calls": 7}), by=None)
    assert sentence in words(who.get(f"/runs/{ended}/retry"))
