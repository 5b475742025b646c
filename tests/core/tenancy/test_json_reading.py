"""JSON and YAML that others wrote: no member of an object stands there twice (R-SEC-11)."""

from typing import Any

import orjson
import pytest
import yaml

from config.live.feeds import RUNS
from orchestrator.bundled_content import read_document
from orchestrator.core.common.argument_parsing import Arguments, MalformedArguments, parse_arguments
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.tools.schema_drift import DRIFT, fault_of
from orchestrator.llm.gateways.providers.response_sanitizing import BrokenReply, document_of
from orchestrator.tools.gateways.egress.service_client import ServiceResponse
from orchestrator.workflow_yaml import read_source
from orchestrator.yaml_reading import read_yaml
from tenancy.core.json_reading import DEEPEST, MemberRepeated, read_json
from tests.factories.tools import TOOLS
from tests.proves import proves
from traces.consumers.websocket import Close, Socket

TWICE = b'{"amount": 1, "to": [{"x": 1}, {"x": 2, "\\u0078": 3}]}'
ONCE = b'{"amount": 1, "to": [{"x": 1}, {"x": 2}], "[[": "}\\""}'


@proves("R-SEC-11", part="duplicate member names wherever JSON is read")
def test_json_with_a_member_twice_is_none() -> None:
    assert read_json(ONCE) == orjson.loads(ONCE)
    with pytest.raises(MemberRepeated, match='"x" is given more than once'):
        read_json(TWICE)


def test_json_nested_deeply_is_refused_the_same_wherever_it_is_read() -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth

    assert read_json(nested(DEEPEST))
    with pytest.raises(orjson.JSONDecodeError, match="deeper than 256"):
        read_json(nested(DEEPEST + 1))


@proves("R-SEC-11", part="duplicate member names in YAML")
@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3\n", '{"a": [{"b": 1, "b": 2}]}', "a: {b: 1, 'b': 2}"])
def test_yaml_with_a_member_twice_is_refused_everywhere(text: str) -> None:
    for reader in (read_yaml, read_document):
        with pytest.raises(yaml.YAMLError, match="given more than once"):
            reader(text)
    with pytest.raises(CompileFailed) as failed:
        read_source(text)
    assert "given more than once" in str(failed.value.data)


def test_yaml_anchors_are_looked_at_once() -> None:
    assert read_yaml("a: &x [1]\nb: *x\n") == {"a": [1], "b": [1]}


@proves("R-SEC-11", part="duplicate member names in a call's arguments")
def test_arguments_with_a_member_twice_are_malformed() -> None:
    assert isinstance(parse_arguments(TWICE), MalformedArguments)
    assert isinstance(parse_arguments(orjson.dumps(TWICE.decode())), MalformedArguments)
    assert isinstance(parse_arguments(TWICE, repeated=True), Arguments)
    assert isinstance(parse_arguments(ONCE), Arguments)


@proves("R-SEC-11", part="duplicate member names in replies and results")
def test_replies_and_results_with_a_member_twice_cannot_be_read() -> None:
    answer: ServiceResponse[Any] = ServiceResponse(body=TWICE)
    with pytest.raises(BrokenReply):
        document_of(TWICE)
    with pytest.raises(orjson.JSONDecodeError):
        answer.json()
    tool = TOOLS["t.read"]
    assert fault_of(tool, TWICE).startswith(DRIFT)
    assert fault_of(tool, ONCE) == ""


@proves("R-SEC-11", part="duplicate member names in a socket's first message")
def test_message_of_a_socket_with_a_member_twice_closes_it() -> None:
    with pytest.raises(Close):
        Socket(None, RUNS).read({"text": '{"after": 1, "after": 2}'}, None)  # type: ignore[arg-type]
