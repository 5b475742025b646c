"""web.fetch and web.page against a real site: the list, redirects, size, kind, charset, and a page's text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.domain.run_events import ToolAnswered, ToolFailed
from orchestrator.core.domain.tool_spec import Egress
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.tools.actions.destinations import set_web
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.gateways.egress.html_text import read_page
from orchestrator.tools.gateways.egress.web_fetch import MOST_BYTES, Reach
from orchestrator.tools.gateways.registry import shipped_tools
from tenancy.core.errors import InvalidInput, Stale
from tests.conftest import House
from tests.doors.gateways.effects import Told
from tests.doors.gateways.houses import registered, use_in_house
from tests.doors.gateways.test_egress import Site
from tests.proves import proves

HTML = {"content-type": "text/html"}


class Place:
    """A house, and a site of which it may read what is below /open/."""

    def __init__(self, loop: EffectLoop, house: House, site: Site) -> None:
        self.loop, self.id, self.site = loop, house.tenant.id, site
        self.origin = f"http://127.0.0.1:{site.port}"
        set_places(self.id, (f"127.0.0.1:{site.port}",), expected=None, by=None, reason="Ours.")
        self.allow(f"{self.origin}/open/*")

    def allow(self, *entries: str) -> None:
        """The list."""
        set_web(self.id, entries, expected=None, by=None, reason="Ours.")

    def read(self, name: str, path: str, **more: Any) -> Told:
        """A call of a version that is pinned to what is below /open/."""
        egress = Egress(argument="/url", allow=(f"{self.origin}/open/*",))
        more.setdefault("spec", shipped_tools()[name].spec.evolve(egress=egress))
        url = path if "://" in path else f"{self.origin}{path}"
        return use_in_house(self.loop, self.id, name, {"url": url, **more.pop("given", {})}, **more)

    def says(self, body: bytes, kind: str = "text/plain", status: int = 200) -> None:
        """What the site answers from now on."""
        self.site.play = lambda _path: (status, {"content-type": kind}, body)


@pytest.fixture
def site() -> Iterator[Site]:
    """A site of this test's own."""
    found = Site()
    yield found
    found.close()


@pytest.fixture
def place(loop: EffectLoop, house: House, site: Site) -> Place:
    """The house and its site."""
    return Place(loop, house, site)


@proves("R-TOOL-19", part="HTTP fetch")
def test_what_stands_at_an_address_is_told_as_its_schema_says(place: Place) -> None:
    place.says('{"a": "ä\u202e"}'.encode(), "application/json; charset=utf-8")
    told = place.read("web.fetch", "/open/a")
    assert isinstance(told.event, ToolAnswered)
    result = told.document(told.event.observation)
    assert validate_against_schema(shipped_tools()["web.fetch"].spec.output_schema, result) is None
    assert (result["text"], result["charset"], result["cut"]) == ('{"a": "ä⟦U+202E⟧"}', "utf-8", False)
    assert result["found_at"] == result["url"] == f"{place.origin}/open/a"


@proves("R-TOOL-19", part="page to text")
def test_a_page_is_told_as_its_text_and_links(place: Place) -> None:
    page = b"<title>T</title><h1>Hi</h1><p>See <a href='/b'>that</a></p><p style='display:none'>obey me</p>"
    place.says(page, "text/html")
    told = place.read("web.page", "/open/a")
    result = told.document(told.event.observation)
    assert validate_against_schema(shipped_tools()["web.page"].spec.output_schema, result) is None
    assert (result["title"], result["text"], result["hidden"]) == ("T", "Hi\nSee that [1]", 7)
    assert result["links"] == [{"number": 1, "text": "that", "url": f"{place.origin}/b"}]


@proves("G3", part="the list of now, too")
@proves("R-TOOL-4", part="an address taken off the list is closed to runs under way")
def test_an_address_taken_off_the_list_is_refused_at_the_next_call(place: Place) -> None:
    place.allow()
    told = place.read("web.fetch", "/open/a")
    assert isinstance(told.event, ToolFailed)
    assert (told.event.error, told.event.sent, place.site.seen) == ("refused", False, [])


def test_an_address_that_is_not_listed_is_read_once_a_person_said_yes(place: Place) -> None:
    # The machine lets such a call go only with a grant; the list does not stop what was granted.
    place.says(b"x")
    assert isinstance(place.read("web.fetch", "/closed/a").event, ToolAnswered)


@proves("P8", part="redirects of a fetch")
@pytest.mark.parametrize(
    ("target", "reached"),
    [("/open/b", True), ("/closed/b", False), ("http://169.254.169.254/", False), ("http://[::1]:1", False)],
)  # fmt: skip
def test_every_hop_has_to_be_on_the_list(place: Place, target: str, *, reached: bool) -> None:
    place.site.play = lambda path: (
        (302, {"location": target}, b"") if path == "/open/a" else (200, HTML, b"x")
    )
    told = place.read("web.fetch", "/open/a")
    assert isinstance(told.event, ToolAnswered) is reached
    assert [path for _, path in place.site.seen] == ["/open/a", "/open/b"][: 1 + reached]


def test_what_a_person_allowed_leads_no_further_than_its_own_origin(place: Place) -> None:
    place.site.play = lambda _path: (302, {"location": f"http://localhost:{place.site.port}/x"}, b"")
    assert place.read("web.fetch", "/closed/a").event.error == "refused"
    assert len(place.site.seen) == 1


def test_a_site_that_leads_round_in_a_ring_is_left(place: Place) -> None:
    place.site.play = lambda _path: (302, {"location": "/open/a"}, b"")
    assert place.read("web.fetch", "/open/a").event.error == "refused"
    assert len(place.site.seen) == 5


@proves("P8", part="a fetch of a private address")
def test_no_list_opens_what_is_private(place: Place) -> None:
    place.allow("http://127.0.0.1:1/*", "http://169.254.169.254/*", "http://localhost:6379/*")
    spec = shipped_tools()["web.fetch"].spec
    for url in ("http://127.0.0.1:1/a", "http://169.254.169.254/a", "http://localhost:6379/a"):
        told = place.read("web.fetch", url, spec=spec)
        assert (told.event.error, told.event.sent) == ("refused", False)


@proves("P8", part="a fetch of a name that rebinds")
def test_a_hop_is_judged_by_its_own_address_and_not_by_a_name_judged_before() -> None:
    reach = Reach(allow=("https://a.example/*",), tenants=EgressPolicy(origins=()), approved="")
    leave = reach.leave("https://a.example/x")
    with pytest.raises(EgressRefused):
        leave.admit_all(target_of("https://a.example/x"), ("10.0.0.1",))


@proves("R-TOOL-11", part="a fetch is bounded")
def test_no_more_than_the_bound_is_read_and_parts_are_asked_for(place: Place) -> None:
    place.says(b"x" * (MOST_BYTES + 5))
    result = (told := place.read("web.fetch", "/open/a", given={"part": 2})).document(told.event.observation)
    assert (len(result["text"]), result["part"], result["cut"]) == (60_000, 2, True)
    assert result["parts"] == -(-MOST_BYTES // 60_000)


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/png", "application/pdf", ""])
def test_what_is_no_text_is_refused(place: Place, kind: str) -> None:
    place.says(b"\x00\x01", kind)
    assert place.read("web.fetch", "/open/a").event.error == "refused"


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("ä".encode("latin-1"), "text/plain; charset=iso-8859-1", "ä"),
        ("<meta charset='windows-1251'><p>Да".encode("cp1251"), "text/html", "Да"),
        (b"\xff\xfe\x61\x00", "text/plain; charset=utf-8", "a"), (b"\xff", "text/plain", "\ufffd"),
        ("ü".encode(), "text/plain; charset=no-such", "ü"),
    ],
)  # fmt: skip
def test_a_charset_is_what_the_bytes_and_the_site_say(
    place: Place, body: bytes, kind: str, text: str
) -> None:
    place.says(body, kind)
    told = place.read("web.page" if "html" in kind else "web.fetch", "/open/a")
    assert told.document(told.event.observation)["text"] == text


@pytest.mark.parametrize(("status", "error", "transient"), [(404, "refused", False), (503, "crashed", True)])
def test_a_page_that_is_not_there_is_a_failure(
    place: Place, status: int, error: str, *, transient: bool
) -> None:
    place.says(b"", "text/plain", status)
    told = place.read("web.fetch", "/open/a")
    assert (told.event.error, told.event.transient) == (error, transient)


def test_a_list_is_kept_in_versions_and_pinned_with_the_tool(place: Place) -> None:
    seed_tenant(place.id)
    first = registered(place.id, "web.page")
    place.allow("https://docs.example/*", "https://docs.example/*")
    second = registered(place.id, "web.page")
    assert second.version == first.version + 1
    assert second.egress is not None
    assert second.egress.allow == ("https://docs.example/*",)
    seed_tenant(place.id)
    assert registered(place.id, "web.page") == second
    with pytest.raises(Stale):
        set_web(place.id, (), expected=1, by=None, reason="Late.")
    with pytest.raises(InvalidInput) as refused:
        set_web(place.id, ("https://a.example/", "nonsense"), expected=None, by=None, reason="x")
    assert [error["pointer"] for error in refused.value.data["errors"]] == ["/allow/1"]


def test_without_a_tenant_nothing_is_reached(loop: EffectLoop) -> None:
    told = use_in_house(loop, None, "web.fetch", {"url": "https://a.example/"})
    assert (told.event.error, told.event.sent) == ("refused", False)


# -- what pages mark as hidden


@proves("M1", part="what a page marks as hidden is kept from the model")
@pytest.mark.parametrize(
    "part",
    [
        "<!-- obey -->", "<p hidden>obey", "<p style='display: NONE'>obey",
        "<p style='margin:0;visibility:hidden'>obey", "<p style='display:none !important'>obey",
        "<div hidden><b>obey</b></div>", "<p popover>obey", "<dialog>obey</dialog>",
        "<template>obey</template>", "<noscript>obey</noscript>", "<script>obey</script>",
        "<style>obey</style>", "<textarea>obey</textarea>", "<select><option>obey</select>",
        "<input type=hidden value=obey>", "<p title=obey data-x=obey>", "<iframe srcdoc=obey>obey</iframe>",
        "<svg><text>obey</text></svg>", "<?obey?>",
    ],
)  # fmt: skip
def test_what_a_page_hides_is_left_out(part: str) -> None:
    read = read_page(f"<body><p>seen</p>{part}</body>", "https://a.example/")
    assert read.text == "seen"
    assert "obey" not in read.title


@pytest.mark.parametrize(
    "part",
    ["<p style='opacity:0.5'>told", "<b><i>told", "<table><td>told", "<p aria-hidden=true>told",
     "<style>.b{display:none}</style><p class=b>told", "<details>told</details>",
     "<p>a</p></body></html><p>told"],
)  # fmt: skip
def test_what_is_not_marked_as_hidden_is_told(part: str) -> None:
    assert "told" in read_page(part, "https://a.example/").text


def test_what_is_hidden_within_what_is_hidden_is_counted_once() -> None:
    page = "<div hidden><p hidden>one<b style='display:none'>two</b></p></div><p>told<b hidden>x</b></p>"
    read = read_page(page * 50, "https://a.example/")
    assert (set(read.text.split()), read.hidden) == ({"told"}, 50 * len("one") + 50 * len("two") + 50)


@proves("R-TOOL-19", part="blocks, lists, tables and line breaks of a page")
def test_the_blocks_of_a_page_are_lines() -> None:
    page = (
        "<h1>A</h1><p>b<b>c</b>\nd<br>e</p><ul><li>f<li>g</ul><table><tr><th>h<th>i<tr><td>j<td>k</table>"
        "<pre>l\n<i>m\n</i>n</pre><img alt=o>"
    )
    text = "A\nbc d\ne\n- f\n- g\n| h | i\n| j | k\nl\nm\nn\n[image: o]"
    assert read_page(page, "https://a.example/").text == text


def test_links_that_lead_nowhere_on_the_web_are_no_links() -> None:
    page = "<a href='javascript:x'>a</a><a href='//b.example/#c'>b</a><a href='http://[bad'>c</a><a>d</a>"
    assert [link.url for link in read_page(page, "https://a.example/").links] == ["https://b.example/"]


@pytest.mark.parametrize(
    "page",
    ["<div>" * 90_000 + "<a href=x>" * 300, "<div></i>" * 90_000, "<b></i>" * 90_000,
     "<br>" * 300_000, "<b a=1><p>" * 120_000],
)  # fmt: skip
def test_a_page_made_to_cost_time_is_cut(page: str) -> None:
    read = read_page(page, "https://a.example/")
    assert (read.text, read.cut) == ("", True)


@pytest.mark.parametrize("page", ["", " ", "<!-- obey -->", "\x00", "<?xml version='1.0' encoding='x'?>"])
def test_a_page_without_text_is_read_as_none(page: str) -> None:
    read = read_page(page, "https://a.example/")
    assert (read.text.strip("\ufffd"), read.links, read.cut) == ("", [], False)


def test_controls_in_a_page_are_written_out() -> None:
    page = "<title>a\u202e</title><p>b\x01\u200b<a href='/\u202ec'>d</a>"
    read = read_page(page, "https://a.example/")
    assert read.title == "a⟦U+202E⟧"
    assert read.text.endswith("⟦U+200B⟧d [1]")
    assert read.links[0].url == "https://a.example/⟦U+202E⟧c"
