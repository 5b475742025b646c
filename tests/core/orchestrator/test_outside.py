"""What the web list admits: one address, all below it, with a query or without; nothing by two readings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.visible_text import escape_invisible_characters
from orchestrator.core.domain.tool_spec import Egress, Risk
from orchestrator.core.tools.destinations import (
    Database,
    Databases,
    MailServer,
    WebRules,
    describe_wider_web_rules,
    entry_of,
    is_url_allowed,
    wider_databases,
    wider_mail,
)
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, _tool, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

LIST = ("https://docs.example/guide/*", "https://api.example/search?*", "https://one.example/page")
URL = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
FETCH = _tool(
    "orders.lookup", input_schema=URL, parallel_safe=True, external=True,
    egress=Egress(argument="/url", allow=LIST),
)  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "https://docs.example/guide/", "https://docs.example/guide/a/b", "https://DOCS.example:443/guide/a",
        "https://api.example/search", "https://api.example/search?q=x", "https://one.example/page",
    ],
)  # fmt: skip
def test_what_is_listed_is_admitted(url: str) -> None:
    assert is_url_allowed(LIST, url)


@proves("G3", part="list")
@pytest.mark.parametrize(
    "url",
    [
        "https://docs.example/guide", "https://docs.example/guidebook", "https://docs.example/guide/a?q=secret",
        "http://docs.example/guide/a", "https://docs.example:8443/guide/a", "https://docs.example.evil/guide/a",
        "https://docs.example/guide/../private", "https://docs.example/guide/%2e%2e/private",
        "https://docs.example/guide/..%2fprivate", "https://docs.example/guide/%252e%252e/x",
        "https://docs.example/guide/a%5c..%5cb", "https://docs.example@evil.example/guide/a",
        "https://one.example/page/", "https://one.example/page?x", "https://one.example/page#x",
        "https://sub.one.example/page", "https://api.example/searching?q=x", "ftp://one.example/page", "",
    ],
)  # fmt: skip
def test_what_is_not_listed_or_has_two_readings_is_not_admitted(url: str) -> None:
    assert not is_url_allowed(LIST, url)


@given(st.text(max_size=60), st.sampled_from(LIST))
def test_nothing_is_admitted_at_another_origin(tail: str, entry: str) -> None:
    origin = "https://evil.example"
    assert not is_url_allowed((entry,), origin + tail)
    assert not is_url_allowed((entry,), f"https://docs.example.{tail}")


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("https://Docs.Example:443", "https://docs.example/"),
        ("https://docs.example/*", "https://docs.example/*"),
        ("https://docs.example/a/*?*", "https://docs.example/a/*?*"),
    ],
)
def test_an_entry_has_one_form(text: str, entry: str) -> None:
    assert entry_of(text) == entry
    assert entry_of(entry) == entry


@pytest.mark.parametrize(
    "text",
    [
        "docs.example", "https://*.example/", "https://docs.example/a*", "https://docs.example/a?q=1",
        "https://docs.example/a/../b", "https://docs.example/#a", "https://u:p@docs.example/", "",
        "https://2130706433/", "https://docs.example/*/b",
    ],
)  # fmt: skip
def test_an_entry_that_names_no_one_place_is_refused(text: str) -> None:
    with pytest.raises(EgressRefused):
        entry_of(text)


def fetching(url: str, **more: Any) -> Simulation:
    run = loop(tools={**TOOLS, "orders.lookup": FETCH.evolve(**more)})
    run.reply(("orders.lookup", {"url": url}))
    return run


@proves("R-TOOL-2", part="an address on the list only reads")
def test_an_address_on_the_list_is_read_and_counted_as_egress() -> None:
    run = fetching("https://docs.example/guide/a")
    assert run.said("approval_requested") == []
    (attempted,) = run.said("call_attempted")
    assert attempted.grant is None
    run.answer({})
    assert run.state.usage["external_calls"] == 1


@proves("G3", part="approval")
@proves("R-TOOL-2", part="any other outgoing call is gated")
def test_any_other_address_is_a_network_call_and_asks() -> None:
    run = fetching("https://docs.example/guide/a?q=secret")
    assert run.said("call_attempted") == []
    assert len(run.said("approval_requested")) == 1
    risk = [body for body in run.said("call_checked") if body.step == "risk"]
    assert [(body.decision, body.rule) for body in risk] == [("approval_required", Risk.NETWORK.value)]


@proves("R-GRAPH-10", part="a boundary that allows reading alone allows no unlisted address")
def test_a_boundary_that_only_reads_denies_what_is_not_listed() -> None:
    run = loop(tools={**TOOLS, "orders.lookup": FETCH}, boundary=BOUNDARY.evolve(risk_ceiling=Risk.READ_ONLY))
    run.reply(("orders.lookup", {"url": "https://evil.example/"}))
    assert run.said("approval_requested") == []
    assert run.said("call_attempted") == []


def test_a_read_without_a_gate_never_rides_on_a_gated_one() -> None:
    run = loop(tools={**TOOLS, "orders.lookup": FETCH})
    run.reply(
        ("orders.lookup", {"url": "https://one.example/page"}), ("orders.lookup", {"url": "https://evil.example/"})
    )  # fmt: skip
    assert len(run.said("call_attempted")) == 1


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("plain\n\ttext", "plain\n\ttext"), ("a\r\nb\rc", "a\nb\nc"), ("a\u202eb", "a⟦U+202E⟧b"),
        ("zero\u200bwidth", "zero⟦U+200B⟧width"), ("\x1b[31mred", "⟦U+001B⟧[31mred"),
        ("Grüße 你好", "Grüße 你好"),
        ("tag\U000e0041", "tag⟦U+E0041⟧"), ("\ud800", "⟦U+D800⟧"),
    ],
)  # fmt: skip
@proves("M14", part="text for a model")
def test_what_does_not_show_is_written_out(text: str, plain: str) -> None:
    assert escape_invisible_characters(text) == plain


@pytest.mark.parametrize(
    ("after", "more"),
    [
        ((), 0),
        (("https://a.example/docs/*?*",), 0),
        (("https://a.example/docs/guide", "https://a.example/docs/x/*"), 0),
        (("https://b.example/one?*",), 1),
        (("https://a.example/*?*", "https://c.example/"), 2),
    ],
)
def test_a_list_is_wider_by_what_no_entry_covered_before(after: tuple[str, ...], more: int) -> None:
    before = WebRules(allow=("https://a.example/docs/*?*", "https://b.example/one"))
    assert len(describe_wider_web_rules(before, WebRules(allow=after))) == more


BOOKS = Database(
    name="books", host="db.example", database="books", reader="r", writer="w", tls="required",
    reader_account="app", writer_account="app_w",
)  # fmt: skip
POST = MailServer(
    sender="a@house.example", host="mail.example", secret="box", account="agent",
    domains=("a.example", "b.example"),
)  # fmt: skip


@proves("R-TOOL-4", part="what reaches further by a database")
@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, 0), ({"tls": "verified"}, 0), ({"writer": ""}, 0), ({"host": "other.example"}, 1),
        ({"port": 5433}, 1), ({"database": "all"}, 1), ({"name": "more"}, 2), ({"tls": "off"}, 1),
        ({"reader": "owner"}, 1), ({"writer": "owner"}, 1), ({"name": "more", "writer": ""}, 1),
        ({"reader_account": "owner"}, 1), ({"writer_account": "owner"}, 1), ({"writer_account": ""}, 1),
    ],
)  # fmt: skip
def test_a_database_reaches_further_by_its_place_its_role_or_its_way(
    change: dict[str, Any], more: int
) -> None:
    before, after = Databases(databases=(BOOKS,)), Databases(databases=(BOOKS.evolve(**change),))
    assert len(wider_databases(before, after)) == more
    assert wider_databases(before, Databases()) == ()
    assert len(wider_databases(Databases(databases=(BOOKS.evolve(writer=""),)), before)) == 1
    assert len(wider_databases(before, Databases(), operators={"books", "till"})) == 1
    unknown = Databases(databases=(BOOKS.evolve(reader_account="", writer_account=""),))
    assert wider_databases(unknown, before) == ()


@proves("R-TOOL-4", part="what reaches further by letter")
@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, 0), ({"domains": ("a.example",)}, 0), ({"domains": ()}, 0), ({"name": "Us"}, 0),
        ({"tls": "implicit"}, 0), ({"domains": ("c.example", "a.example")}, 1), ({"domains": None}, 1),
        ({"host": "other.example"}, 1), ({"port": 25}, 1), ({"host": ""}, 1), ({"tls": "off"}, 1),
        ({"sender": "b@house.example"}, 1), ({"secret": "other"}, 1),
        ({"account": "chief"}, 1),
    ],
)  # fmt: skip
def test_letters_reach_further_by_their_server_their_sender_or_their_recipients(
    change: dict[str, Any], more: int
) -> None:
    assert len(wider_mail(POST, POST.evolve(**change))) == more
    assert len(wider_mail(None, POST)) == 2
    assert wider_mail(POST.evolve(domains=None), POST) == ()
