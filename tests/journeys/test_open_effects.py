"""Changes whose answers leave open whether they happened, through a cancel and a retry: judged by the logs of
the services that they went to (R-TOOL-9, G6)."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
import pytest
from pytest_django import Settings

from orchestrator.core.common.errors import EffectInDoubt
from orchestrator.core.tools.registration import asked_declaration
from orchestrator.core.tools.schema_drift import CUT
from orchestrator.runs.queries.inflight_effects import was_sent_in_line
from orchestrator.runs.queries.runs import state_now
from orchestrator.tools.actions.http_tools import declare_http_tool
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.crm import Crm
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.denied import DOWN
from tests.factories.foreign import called, foreign, onwards, to_the_end
from tests.factories.retrying import retried
from tests.factories.servers import READS, admit, connect, let_in
from tests.factories.world import World, make_world
from tests.proves import proves
from traces.queries import load_payloads

TEXT = {"type": "string", "maxLength": 200}
NOTE = {"person": "ada", "text": "Thank you."}
# Nobody is asked for a yes.
FREE = {"risk": "local_write", "reversibility": "reversible"}
LOOKUP = {"path": "/notes", "arguments": {"key": "/key"}, "found": "/notes"}
ODD: list[Any] = [["a list", "where an object was declared"], b'{"id": "' + b"x" * 12_000_000 + b'"}']


@pytest.fixture
def crm() -> Iterator[Crm]:
    """A service of this test's own."""
    found = Crm()
    yield found
    found.close()


@pytest.fixture
def world(house: House, crm: Crm) -> World:
    """A furnished house that may reach the service."""
    found = make_world(house)
    set_places(found.id, (crm.place,), expected=None, by=None, reason="Ours.")
    return found


@pytest.fixture
def model(settings: Settings) -> Iterator[OpenAIServer]:
    """The only model."""
    with foreign(settings, OpenAIServer()) as server:
        yield server


def adds(world: World, crm: Crm, **more: Any) -> None:
    """The tool loop may add notes."""
    given = {
        "name": "crm.add_note", "description": "Add a note.", **FREE,
        "input_schema": {
            "type": "object", "properties": {"person": TEXT, "text": TEXT}, "required": ["text"],
        },
        "output_schema": {"type": "object", "required": ["id"]},
        "verifier": {"name": "schema", "equal": {"/result/text": "/arguments/text"}},
        "request": {"method": "POST", "url": f"{crm.origin}/people/{{person}}/notes", "body": "rest"}, **more,
    }  # fmt: skip
    declare_http_tool(world.id, asked_declaration(given), by=None, reason="We need it.")
    let_in(world, "crm", side_effects=5)


def asked(world: World, model: OpenAIServer, *then: Any) -> UUID:
    """A run whose model asks for a note, is told of it, and then says this."""
    model.play(calls(called("crm.add_note", **NOTE)), *then)
    run = world.submit("tool-loop", "Add the note Thank you. to ada.")
    onwards(world, run)
    return run


def kinds(world: World, run: UUID) -> list[str]:
    """What people are asked."""
    return [request.kind for request in world.open_requests(run)]


def told(model: OpenAIServer) -> str:
    """What the model was told last."""
    return str(model.documents[-1]["messages"][-1]["content"])


@proves("R-TOOL-14", part="a change whose answer cannot be read has not failed")
@proves("G6", part="an odd answer, a cancel, a retry")
@pytest.mark.parametrize("odd", ODD, ids=["list", "12 MB"])
def test_a_change_with_an_odd_answer_is_not_made_again_by_a_retry(
    world: World, crm: Crm, model: OpenAIServer, odd: Any
) -> None:
    adds(world, crm)
    crm.says = odd
    run = asked(world, model, DOWN)
    assert kinds(world, run) == ["reconciliation"]
    to_the_end(world, run, "cancel")
    crm.says = None
    with pytest.raises(EffectInDoubt, match=r"crm\.add_note"):
        retried(world, run)
    assert (crm.posts(), len(crm.notes)) == (1, 1)
    world.sound(run)


@proves("G7", part="what is known of an answer that was cut")
def test_an_oversized_answer_of_a_change_keeps_its_status_its_digest_and_its_first_bytes(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm)
    crm.says = body = b'{"id": "' + b"x" * 12_000_000 + b'"}'
    run = asked(world, model, said("Done."))
    to_the_end(world, run, "happened")
    (seen,) = [one for one in world.said(run, "call_observed") if one["status"] == "unreadable"]
    digest = sha256(body).hexdigest()
    assert (seen["code"], seen["size"], seen["whole"], seen["truncated"]) == (201, len(body), digest, True)
    with tenant_transaction(world.id):
        (kept,) = load_payloads(run, [seen["observation"]]).values()
    assert body.startswith(kept)
    assert len(kept) > 1_000
    assert world.run(run).terminal_code == "SUCCESS"
    known = {"fault": CUT, "status": 201, "bytes": len(body), "sha256": digest}
    assert orjson.loads(told(model))["answer"] == known
    assert (crm.posts(), world.said(run, "effect_settled")[-1]["by"]) == (1, "person")
    world.sound(run)


@proves("R-TOOL-14", part="an oversized answer of a read")
def test_a_read_with_an_oversized_answer_fails_as_drift_and_says_how_large_it_was(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    request = {"method": "GET", "url": f"{crm.origin}/people/{{person}}"}
    given = {"name": "crm.find", "description": "Find.", **READS, "request": request,
             "input_schema": {"type": "object", "properties": {"person": TEXT}}}  # fmt: skip
    declare_http_tool(world.id, asked_declaration(given), by=None, reason="We need it.")
    let_in(world, "crm")
    crm.reads = b'{"email": "' + b"x" * 2_000_000 + b'"}'
    model.play(calls(called("crm.find", person="ada")), said("Not found."))
    run = world.submit("tool-loop", "Find ada.")
    onwards(world, run)
    answer = orjson.loads(told(model))
    assert (answer["status"], answer["error"]) == ("error", "malformed")
    assert (answer["answer"]["status"], answer["answer"]["bytes"]) == (200, len(crm.reads))
    assert answer["answer"]["sha256"] == sha256(crm.reads).hexdigest()
    assert [one["tool"] for one in world.said(run, "parser_drifted")] == ["crm.find"]
    assert kinds(world, run) == []
    world.sound(run)


@proves("R-TOOL-9", part="an open effect in a line of retries")
@proves("R-SESS-9", part="an open effect in a line of retries")
@pytest.mark.parametrize(("verdict", "posts"), [("happened", 1), ("not_happened", 2)])
def test_a_retry_asks_a_person_before_it_makes_a_change_again_that_answered_with_an_error(
    world: World, crm: Crm, model: OpenAIServer, verdict: str, posts: int
) -> None:
    adds(world, crm)
    crm.status, crm.times, crm.makes = 500, 1, verdict == "happened"
    run = asked(world, model, DOWN)
    assert (world.run(run).terminal_code, kinds(world, run)) == ("UNAVAILABLE_DEP", [])
    assert orjson.loads(told(model))["effect"] == "open"
    (opened,) = world.result(run)["open_effects"]
    assert (opened["tool"], opened["error"], opened["key"]) == ("crm.add_note", "crashed", crm.keys[0])
    crm.makes = True
    ask = calls(called("crm.add_note", **NOTE))
    model.play(ask, *([ask] if verdict == "not_happened" else []), said("Done."))
    again = retried(world, run)
    onwards(world, again)
    assert (kinds(world, again), crm.posts()) == (["reconciliation"], 1)
    found = to_the_end(world, again, verdict)
    assert (found.terminal_code, crm.posts(), len(crm.notes)) == ("SUCCESS", posts, 1), found.reason
    assert len(set(crm.keys)) == 1
    assert "open_effects" not in world.result(again)
    with tenant_transaction(world.id):
        assert {deed.standing for deed in state_now(again).deeds.values()} == {"done"}
    for one in (run, again):
        world.sound(one)


@proves("R-TOOL-9", part="an open effect in its own run")
def test_the_same_change_in_the_same_run_asks_a_person_first(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm)
    crm.status, crm.times = 500, 1
    run = asked(world, model, calls(called("crm.add_note", **NOTE)), said("Done."))
    assert (kinds(world, run), crm.posts()) == (["reconciliation"], 1)
    assert to_the_end(world, run, "happened").terminal_code == "SUCCESS"
    assert (crm.posts(), len(crm.notes)) == (1, 1)
    world.sound(run)


@proves("R-TOOL-9", part="a live worker repeats under the key")
@pytest.mark.parametrize("drops", [True, False], ids=["cut", "500"])
def test_a_change_with_keys_is_repeated_under_its_key_and_nobody_is_asked(
    world: World, crm: Crm, model: OpenAIServer, drops: bool
) -> None:
    adds(world, crm, recovery="keys")
    crm.status, crm.drops, crm.times, crm.honours = 500, drops, 1, True
    run = asked(world, model, said("Done."))
    assert (world.run(run).terminal_code, kinds(world, run)) == ("SUCCESS", [])
    assert (crm.posts(), len(set(crm.keys)), len(crm.notes)) == (2, 1, 1)
    assert [one["cause"] for one in world.said(run, "retry_scheduled")] == ["crashed"]
    assert [one["by"] for one in world.said(run, "effect_settled")] == ["done"]
    assert "call_in_doubt" not in world.kinds(run)
    world.sound(run)


@proves("R-TOOL-10", part="repetitions under a key are bounded")
@pytest.mark.parametrize(("drops", "asks"), [(True, ["reconciliation"]), (False, [])], ids=["cut", "500"])
def test_repetitions_under_a_key_end_with_the_retry_policy(
    world: World, crm: Crm, model: OpenAIServer, drops: bool, asks: list[str]
) -> None:
    adds(world, crm, recovery="keys", max_retries=1)
    crm.status, crm.drops, crm.honours = 500, drops, True
    run = asked(world, model, said("Done."))
    assert (kinds(world, run), crm.posts(), len(crm.notes)) == (asks, 2, 1)
    to_the_end(world, run, "happened")
    assert crm.posts() == 2
    world.sound(run)


@proves("R-TOOL-9", part="an open effect in a line of retries, under its key")
def test_a_retry_sends_a_change_that_is_open_under_its_honoured_key(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm, recovery="keys", max_retries=1)
    crm.status, crm.times, crm.honours = 500, 2, True
    run = asked(world, model, DOWN)
    assert world.result(run)["open_effects"][0]["tool"] == "crm.add_note"
    model.play(calls(called("crm.add_note", **NOTE)), said("Done."))
    again = retried(world, run)
    found = onwards(world, again)
    assert (found.terminal_code, kinds(world, again)) == ("SUCCESS", []), found.reason
    assert (crm.posts(), len(set(crm.keys)), len(crm.notes)) == (3, 1, 1)
    world.sound(again)


@proves("R-TOOL-9", part="an open effect is looked up before it is sent again")
@pytest.mark.parametrize("arrives", [True, False])
def test_a_retry_looks_up_an_open_change_before_it_sends_it_again(
    world: World, crm: Crm, model: OpenAIServer, arrives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.effects.effect_executor.LOOK_AGAIN_SECONDS", 0.05)
    adds(world, crm, recovery="lookup", lookup=LOOKUP)
    crm.status, crm.times, crm.makes = 500, 1, False
    run = asked(world, model, DOWN)
    assert (kinds(world, run), len(world.result(run)["open_effects"])) == ([], 1)
    if arrives:
        # What was sent was only slow.
        crm.notes.append({"id": "n0", "key": crm.keys[0], **NOTE})
    model.play(calls(called("crm.add_note", **NOTE)), said("Done."))
    again = retried(world, run)
    found = onwards(world, again)
    assert (crm.posts(), kinds(world, again)) == (1, [] if arrives else ["reconciliation"])
    if arrives:
        assert found.terminal_code == "SUCCESS", found.reason
        assert [one["resolution"] for one in world.said(again, "call_recovered")] == ["found"]
    world.sound(again)


@proves("R-TOOL-9", part="an open effect is looked up before it is sent again")
def test_a_retry_sends_what_a_conclusive_look_up_does_not_find(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm, recovery="lookup", lookup=LOOKUP, conclusive=True)
    # Its look-up is away at first.
    crm.status, crm.times, crm.makes, crm.away = 500, 1, False, True
    run = asked(world, model, DOWN)
    assert (kinds(world, run), len(world.result(run)["open_effects"])) == ([], 1)
    crm.makes, crm.away = True, False
    model.play(calls(called("crm.add_note", **NOTE)), said("Done."))
    again = retried(world, run)
    found = onwards(world, again)
    assert (found.terminal_code, kinds(world, again)) == ("SUCCESS", []), found.reason
    assert (crm.posts(), len(crm.notes)) == (2, 1)
    world.sound(again)


@proves("R-TOOL-9", part="a key is known in the line of retries")
def test_a_key_that_a_run_sent_is_known_to_its_retry_and_no_other_is(
    world: World, crm: Crm, model: OpenAIServer
) -> None:
    adds(world, crm)
    crm.status, crm.times = 500, 1
    run = asked(world, model, DOWN)
    again = retried(world, run)
    key = crm.keys[0]
    assert was_sent_in_line(world.id, again, key)
    assert not was_sent_in_line(world.id, again, "0" * 40)
    assert not was_sent_in_line(world.id, run, key)


@proves("R-TOOL-14", part="a tool server's answer that cannot be read")
@pytest.mark.parametrize(
    ("mode", "asks"),
    [
        ("commit_then_odd", ["reconciliation"]),
        ("commit_then_big", ["reconciliation"]),
        ("commit_then_fail", []),
    ],
)
def test_a_tool_servers_change_without_a_readable_result_is_made_once_in_its_line(
    house: House, tool_server: ToolServer, model: OpenAIServer, mode: str, asks: list[str]
) -> None:
    world = make_world(house)
    connect(world.id, tool_server)
    admit(world.id, "send_note", **FREE)
    let_in(world, "shop", side_effects=5)
    tool_server.tell(modes={"send_note": mode})
    ask = calls(called("shop.send_note", to="ada@example.org", text="Thank you."))
    model.play(ask, DOWN)
    run = world.submit("tool-loop", "Send the note Thank you. to ada@example.org.")
    onwards(world, run)
    assert (kinds(world, run), len(tool_server.effects())) == (asks, 1)
    tool_server.tell()
    if asks:
        to_the_end(world, run, "cancel")
        with pytest.raises(EffectInDoubt, match=r"shop\.send_note"):
            retried(world, run)
    else:
        model.play(ask, said("Done."))
        again = retried(world, run)
        onwards(world, again)
        assert kinds(world, again) == ["reconciliation"]
        assert to_the_end(world, again, "happened").terminal_code == "SUCCESS"
    assert len(tool_server.effects()) == 1
    world.sound(run)
