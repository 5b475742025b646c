"""A secret is taken out of what a service says, however it is spelt and wherever the text was cut."""

import json
from base64 import b64encode
from html import escape
from urllib.parse import quote

import pytest

from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.tools.gateways.egress.service_client import KEPT
from orchestrator.tools.gateways.mcp.mcp_client import ServerAddress
from orchestrator.tools.gateways.secret_redaction import without_secret
from tests.doors.gateways.test_mcp import called
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.proves import proves

SECRET = 'to"k\\/<31415926>+%'
TOLD = json.dumps({"you_sent": f"Bearer {SECRET}"})


@proves("W8", part="a secret in other spellings")
@pytest.mark.parametrize(
    "said",
    [
        f"Bearer {SECRET}", TOLD, TOLD.replace("/", "\\/"), json.dumps(TOLD), quote(SECRET),
        quote(SECRET, safe=""), escape(SECRET), b64encode(SECRET.encode()).decode(),
    ],
)  # fmt: skip
def test_a_secret_goes_out_of_a_text_in_every_spelling(said: str) -> None:
    clean = without_secret(said.encode(), SECRET)
    assert b"[secret]" in clean
    assert not any(part in clean for part in (b"31415926", b64encode(SECRET.encode())[:8]))


def test_a_text_without_it_and_a_call_without_one_stay_as_they_are() -> None:
    assert without_secret(b'{"a": "to"}', SECRET) == b'{"a": "to"}'
    assert without_secret(b"x", "", cut=True) == b"x"


@proves("W8", part="a secret in the middle of which an answer was cut")
@pytest.mark.parametrize("length", range(1, len(SECRET)))
def test_of_a_secret_in_which_a_text_ends_nothing_is_left(length: int) -> None:
    assert without_secret(f"It is {SECRET[:length]}".encode(), SECRET, cut=True) == b"It is "


@proves("W8", part="an answer of a tool server that was cut in the middle of a secret")
async def test_an_answer_that_is_cut_in_the_middle_of_a_secret_gives_none_of_it(
    tool_server: ToolServer,
) -> None:
    secret = "tok-" + "0123456789abcdef" * 4
    # An answer is kept from `{"text":"` on: the secret begins twenty signs before its end.
    told = "x" * (KEPT - 20 - len('{"text":"')) + secret + "x" * KEPT
    tool_server.tell(modes={"say": "secret"}, told=told)
    leave = EgressPolicy(origins=(f"http://{tool_server.place}",), private=(tool_server.place,))
    place = ServerAddress(server="shop", url=tool_server.url, leave=leave, secret=secret)
    answer = await called(place, "say", {})
    assert answer.truncated
    assert answer.body.endswith(b"xxx")
