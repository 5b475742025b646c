"""The fault harness's count of effects: each way in which something can go wrong is seen."""

from bench.faults.effect_count import Ended, Performed, count_effects, tag_of

STEPS = ("x0001-s1", "x0001-s2")
DONE = Ended(run="one", tags=STEPS, code="SUCCESS")
MADE = [Performed(service="book", tag=tag, key=f"key {tag}") for tag in STEPS]


def test_effects_performed_once_each_are_clean() -> None:
    found = count_effects([DONE], MADE)
    assert found.is_clean
    assert found.effects == 2


def test_a_step_that_no_service_performed_is_lost() -> None:
    assert count_effects([DONE], MADE[:1]).lost == ("x0001-s2",)


def test_a_step_performed_twice_is_doubled_under_whatever_key() -> None:
    again = Performed(service="note", tag=STEPS[0], key="another")
    assert count_effects([DONE], [*MADE, again]).doubled == (STEPS[0],)


def test_a_key_that_made_two_changes_is_doubled() -> None:
    found = count_effects([DONE], [Performed(service="book", tag=tag, key="one key") for tag in STEPS])
    assert found.doubled == ("book one key",)


def test_a_change_of_no_accepted_run_is_doubled() -> None:
    stranger = Performed(service="book", tag="x0009-s1", key="")
    assert count_effects([DONE], [*MADE, stranger]).doubled == ("x0009-s1",)


def test_a_run_that_has_not_ended_is_stuck_though_it_waits_for_a_person() -> None:
    stuck = Ended(run="two", tags=("x0002-s1",), code="")
    waits = Ended(run="three", tags=("x0003-s1",), code="", at_a_person=True)
    found = count_effects([DONE, stuck, waits], MADE)
    assert (found.stuck, found.lost) == (("two", "three waits"), ())
    assert not count_effects([waits], []).is_clean


def test_a_run_that_ended_without_its_result_has_failed() -> None:
    failed = Ended(run="two", tags=(), code="TIMEOUT", reason="deadline")
    assert count_effects([DONE, failed], MADE).failed == ("two TIMEOUT deadline",)


def test_the_step_that_a_text_names_is_found() -> None:
    assert tag_of('{"subject": "x0012-s3"}') == "x0012-s3"
    assert tag_of("no step") == ""
