"""Whatever stands under a secret's name is sealed, of every JSON shape and through every gateway, and so is
what it says wherever else it stands (R-SEC-4, R-TRACE-5, W8). Judged by what the service received."""

from typing import Any

import orjson
import psycopg
import pytest
from pytest_django import Settings

from orchestrator.core.llm.prompt_builder import SEALED
from tests.doubles.crm import Crm
from tests.doubles.openai_server import calls, said
from tests.factories.foreign import called, foreign, onwards
from tests.factories.servers import READS
from tests.factories.world import World
from tests.journeys.test_sealed_goals import with_reference
from tests.journeys.test_sealed_values import Scripted, asking, change, rows_with, sent
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import TEXT, declare
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import world as world
from traces.core.sealed_references import REFERENCE

MARK = "48151623"
SHAPES: dict[str, Any] = {
    "number": 48151623, "fraction": 4815.1623, "list": [f"hunter{MARK}", 17], "numbers": [48151623, None],
    "object": {"now": f"hunter{MARK}", "then": {"pin": 4815162}}, "nested": [[{"a": f"hunter{MARK}"}], {}],
    "json in a text": f'{{"password": {MARK}}}', "quoted": f'"{MARK}\\"', "flag": True,
}  # fmt: skip
SPELT = ("48151623", "4815162", "4815.1623")
LOGIN = "hunter2-of-ada"


def takes(crm: Crm, **more: Any) -> dict[str, Any]:
    """A tool that takes anything as a password."""
    schema = {
        "type": "object", "properties": {"person": TEXT, "password": {}, "note": {}}, "required": ["person"],
    }  # fmt: skip
    return change(crm, input_schema=schema, **more)


@proves("R-SEC-4", part="every JSON shape is sealed and sent exactly")
@proves("R-TRACE-5", part="a secret of every JSON shape in every table")
@pytest.mark.slow
@pytest.mark.parametrize("value", SHAPES.values(), ids=SHAPES)
def test_a_secret_of_any_shape_is_sent_exactly_and_stands_in_no_row_and_no_later_prompt(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection, value: Any
) -> None:
    declare(world, takes(crm))
    model = Scripted(calls(called("crm.change_password", person="ada", password=value)))
    with asking(world, settings, model) as run:
        (request,) = world.open_requests(run)
        packet = orjson.loads(bytes(request.packet))
        assert REFERENCE.fullmatch(orjson.loads(packet["arguments"])["password"])
        assert request.sealed
        world.decide(request, world.people.approver)
        onwards(world, run)
    assert sent(crm) == [{"password": value}]
    assert world.run(run).terminal_code == "SUCCESS"
    for spelt in SPELT:
        assert spelt not in model.received[1]
        assert rows_with(superuser, spelt) == []
    world.sound(run)


@proves("W8", part="a sealed value in a sentence of the same reply")
def test_a_secret_that_recurs_in_the_same_reply_is_sent_exactly_and_stands_nowhere(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, takes(crm))
    first = called("crm.change_password", person="bob", password="x1", note=[f"Not {LOGIN}."])
    second = called("crm.change_password", person="ada", password=LOGIN, note=f"It is {LOGIN}, {LOGIN}!")
    model = Scripted(calls(first, second, text=f"I set {LOGIN} for ada."))
    with asking(world, settings, model) as run:
        for _ in range(2):
            (request,) = world.open_requests(run)
            world.decide(request, world.people.approver)
            onwards(world, run)
    assert sent(crm) == [
        {"password": "x1", "note": [f"Not {LOGIN}."]},
        {"password": LOGIN, "note": f"It is {LOGIN}, {LOGIN}!"},
    ]
    assert LOGIN not in model.received[-1]
    assert rows_with(superuser, LOGIN) == []
    world.sound(run)


@proves("M16", part="a sealed value that another tool says")
def test_a_secret_that_another_tool_says_later_stands_in_no_prompt(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, takes(crm))
    request = {"method": "GET", "url": f"{crm.origin}/people/{{person}}"}
    schema = {"type": "object", "properties": {"person": TEXT}, "required": ["person"]}
    declare(world, {"name": "crm.find", "description": "Find.", **READS, "input_schema": schema,
                    "request": request})  # fmt: skip
    crm.reads = orjson.dumps({"email": "ada@example.org", "said": f"My word is {LOGIN}, keep it."})
    look = calls(called("crm.find", person="ada"))
    ask = calls(called("crm.change_password", person="ada", password=LOGIN))
    model = Scripted(ask, look, said(f"Her word is {LOGIN} now."))
    with asking(world, settings, model) as run:
        world.decide(world.open_requests(run)[0], world.people.approver)
        # Another worker goes on with it: what was sealed is known from the rows.
        onwards(world, run)
    assert len(model.received) == 3
    assert [one for one in model.received if LOGIN in one] == []
    assert "My word is [sealed:" in model.received[2]
    assert rows_with(superuser, LOGIN) == []
    world.sound(run)


@proves("M16", part="a sensitive value of the task in a sentence of it")
def test_a_secret_of_the_task_that_recurs_in_its_sentences_stands_nowhere(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection
) -> None:
    declare(world, change(crm))
    model = Scripted(with_reference("crm.change_password", person="ada", password="#"))
    with foreign(settings, model):
        run = world.submit("tool-loop", f"Set ada's login to {LOGIN}.", inputs={"password": LOGIN}, key="k1")
        assert world.submit(
            "tool-loop", f"Set ada's login to {LOGIN}.", inputs={"password": LOGIN}, key="k1"
        ) == run  # fmt: skip
        onwards(world, run)
        world.decide(world.open_requests(run)[0], world.people.approver)
        onwards(world, run)
    assert sent(crm) == [{"password": LOGIN}]
    assert [one for one in model.received if LOGIN in one] == []
    assert rows_with(superuser, LOGIN) == []
    world.sound(run)


@proves("M16", part="a reference within a sealed value is none of the model's to open")
@pytest.mark.parametrize("within", ["x #", ["#"], {"a": "#"}, {"password": {"b": ["#", 5]}}])
def test_a_reference_that_a_model_hides_in_a_secret_is_judged_like_any_other(
    world: World, crm: Crm, settings: Settings, within: Any
) -> None:
    declare(world, takes(crm))
    text = orjson.dumps(within).decode()

    def hidden(reference: str) -> Any:
        return orjson.loads(text.replace("#", reference))

    def reply(seen: Any) -> Any:
        found = REFERENCE.search(orjson.dumps(seen.document).decode())
        assert found is not None
        return calls(called("crm.change_password", person="bob", password=hidden(found[0])))

    # The note's value was sealed for the note alone.
    first = calls(called("crm.change_password", person="ada", note={"secret": f"hunter{MARK}"}))
    with asking(world, settings, Scripted(first, reply)) as run:
        world.decide(world.open_requests(run)[0], world.people.approver, "reject")
        onwards(world, run)
        assert world.open_requests(run) == []
    assert sent(crm) == []
    denied = [one for one in world.said(run, "call_checked") if one["decision"] == "deny"]
    assert denied[0]["rule"] == "schema"
    assert "was not given for this" in denied[0]["detail"]


@proves("R-SEC-4", part="a reference says its value's kind")
def test_a_reference_of_another_kind_than_its_value_opens_nothing(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, takes(crm))

    def reply(seen: Any) -> Any:
        found = REFERENCE.search(orjson.dumps(seen.document).decode())
        assert found is not None
        other = found[0].replace("secret_field", "secret_value")
        return calls(called("crm.change_password", person="ada", password=other))

    first = calls(called("crm.change_password", person="ada", password=LOGIN))
    with asking(world, settings, Scripted(first, reply)) as run:
        world.decide(world.open_requests(run)[0], world.people.approver, "reject")
        onwards(world, run)
        assert world.open_requests(run) == []
    denied = [one for one in world.said(run, "call_checked") if one["decision"] == "deny"]
    assert "none of this run's" in denied[0]["detail"]


@proves("M16", part="the prompt says what a reference is")
def test_a_prompt_says_what_a_reference_is_where_one_stands_in_it(
    world: World, crm: Crm, settings: Settings
) -> None:
    declare(world, change(crm))
    model = Scripted(calls(called("crm.change_password", person="ada", password=LOGIN)))
    with asking(world, settings, model) as run:
        world.decide(world.open_requests(run)[0], world.people.approver)
        onwards(world, run)
    assert [SEALED in orjson.loads(one)["messages"][0]["content"] for one in model.received] == [False, True]
    world.sound(run)
