"""The shell as every page has it: who may see what, which tenant, headers, refusals (R-SEC-1, R-SEC-5)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import orjson
import pytest
from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path

from approvals.core.errors import AlreadyDecided
from config.site.static_files import VersionedStaticFiles
from tenancy.actions import add_member, remove_member
from tenancy.core.errors import OtherTenant
from tenancy.core.roles import Role, Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Tenant
from tenancy.web.page_auth import PageRequest, require_member
from tests.conftest import House
from tests.factories.tenancy import Somebody, make_tenant
from tests.proves import proves
from tests.servers import ROOT

HTML = {"accept": "text/html"}


@require_member(Scope.READ)
def who(request: PageRequest) -> HttpResponse:
    """Says who is asking, and shows a moment."""
    member = request.member
    assert isinstance(member.tenant, Tenant)
    return HttpResponse(f"{member.tenant.id} {','.join(member.roles)} {member.time_zone.key}")


@require_member(Scope.ADMIN)
def for_admins(request: PageRequest) -> HttpResponse:
    """For administrators alone."""
    return HttpResponse("welcome")


@require_member()
def refused(request: PageRequest) -> HttpResponse:
    """Raises what a verb would."""
    raise AlreadyDecided(by="Dana", at="10:42")


@require_member()
def broken(request: PageRequest) -> HttpResponse:
    """Raises what nobody outside can cause."""
    raise OtherTenant(secret="not to be told")


def crash(request: HttpRequest) -> HttpResponse:
    """A fault of ours."""
    message = "not to be told"
    raise RuntimeError(message)


urlpatterns = [
    path("who", who),
    path("for-admins", for_admins),
    path("refused", refused),
    path("broken", broken),
    path("crash", crash),
    path("", include("config.urls")),
]
handler404 = "config.api.problems.not_found"
handler500 = "config.api.problems.server_error"


@pytest.fixture(autouse=True)
def with_own_pages() -> Iterator[None]:
    """The site with the pages above in front."""
    with override_settings(ROOT_URLCONF=__name__):
        yield


def signed_in(somebody: Somebody) -> Client:
    """A client with a session."""
    client = Client(headers=HTML, raise_request_exception=False)
    client.force_login(somebody.person)
    return client


def test_a_stranger_is_sent_to_sign_in(house: House) -> None:
    answer = Client(headers=HTML).get("/who?x=1")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account/login/?next=/who%3Fx%3D1")


def test_a_fragment_for_a_stranger_sends_the_whole_page_to_sign_in(house: House) -> None:
    answer = Client(headers={**HTML, "HX-Request": "true", "HX-Current-URL": "/who"}).get("/who")
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/account/login/?next=/who")


@proves("R-SEC-2", part="people: roles at every page")
@pytest.mark.parametrize("role", ["operator", "approver", "auditor", "submitter"])
def test_a_page_for_admins_names_the_scope_and_whom_to_ask(house: House, role: str) -> None:
    answer = signed_in(getattr(house.people, role)).get("/for-admins")
    text = answer.content.decode()
    assert answer.status_code == 403
    assert "needs the scope admin" in text
    assert house.people.admin.person.name in text
    assert signed_in(house.people.admin).get("/for-admins").content == b"welcome"


def test_a_role_that_was_taken_is_gone_with_the_next_page(house: House) -> None:
    client = signed_in(house.people.admin)
    add_member(house.tenant.id, house.people.admin.person, Role.AUDITOR)
    remove_member(house.tenant.id, house.people.admin.person, Role.ADMIN)
    assert client.get("/for-admins").status_code == 403


def test_a_person_without_a_tenant_is_told_so(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        Membership.objects.filter(person=house.people.auditor.person).delete()
    answer = signed_in(house.people.auditor).get("/who")
    assert answer.status_code == 403
    assert "no tenant yet" in answer.content.decode()
    assert "Sign out" in answer.content.decode()


@proves("R-SEC-1", part="the tenant of a page")
def test_one_can_switch_to_one_s_own_tenants_only(house: House) -> None:
    second = make_tenant()
    add_member(second.id, house.people.operator.person, Role.AUDITOR)
    client = signed_in(house.people.operator)
    assert (
        client.post("/tenant/switch", {"tenant": str(second.id), "next": "/who"}).headers["Location"]
        == "/who"
    )
    assert client.get("/who").content.decode() == f"{second.id} auditor UTC"
    for foreign in (str(house.people.other_tenant.id), str(uuid4()), "no id", ""):
        assert client.post("/tenant/switch", {"tenant": foreign}).status_code == 404
    assert str(second.id) in client.get("/who").content.decode()


def test_a_chosen_tenant_that_one_has_left_gives_way(house: House) -> None:
    client = signed_in(house.people.operator)
    session = client.session
    session["tenant"] = str(house.people.other_tenant.id)
    session.save()
    assert str(house.tenant.id) in client.get("/who").content.decode()


def test_switching_never_leads_to_another_site(house: House) -> None:
    client = signed_in(house.people.operator)
    data = {"tenant": str(house.tenant.id), "next": "https://evil.example/"}
    assert client.post("/tenant/switch", data).headers["Location"] == "/"


CSP = (
    "default-src 'none'", "script-src 'self' 'nonce-", "style-src 'self'", "img-src 'self' data:",
    "font-src 'self'", "connect-src 'self'", "form-action 'self'", "base-uri 'none'",
    "frame-ancestors 'none'",
)  # fmt: skip


@proves("R-SEC-5", part="headers of pages")
def test_every_page_has_the_strict_policy_and_its_headers(house: House) -> None:
    answer = signed_in(house.people.admin).get("/styleguide")
    policy = answer.headers["Content-Security-Policy"]
    assert [part for part in CSP if part not in policy] == []
    assert "unsafe" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in answer.headers["Permissions-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]


@proves("R-SEC-5", part="no inline script")
def test_the_one_script_in_a_page_is_the_import_map_with_the_nonce(house: House) -> None:
    answer = signed_in(house.people.admin).get("/styleguide")
    text, policy = answer.content.decode(), answer.headers["Content-Security-Policy"]
    inline = [tag for tag in text.split("<script")[1:] if "src=" not in tag.partition(">")[0]]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert len(inline) == 1
    assert f'type="importmap" nonce="{nonce}"' in inline[0]
    assert " style=" not in text
    assert " onclick=" not in text.replace("&lt;b onclick=", "")


@proves("R-SEC-5", part="forms from elsewhere")
def test_a_form_without_its_token_changes_nothing_and_says_so(house: House) -> None:
    client = Client(enforce_csrf_checks=True, headers=HTML)
    client.force_login(house.people.operator.person)
    answer = client.post("/tenant/switch", {"tenant": str(house.tenant.id)})
    assert answer.status_code == 403
    assert "Nothing was changed" in answer.content.decode()


@proves("R-SEC-5", part="sessions do not open the API")
def test_a_session_is_no_key_to_the_api(house: House) -> None:
    answer = signed_in(house.people.admin).get("/api/v1/runs", headers={"accept": "application/json"})
    assert answer.status_code == 401


def test_a_verb_s_refusal_is_a_page_with_its_status_and_sentence(house: House) -> None:
    answer = signed_in(house.people.approver).get("/refused")
    assert answer.status_code == 409
    assert "already-decided" in answer.content.decode()


@proves("R-SEC-7", part="pages")
@pytest.mark.parametrize("path_", ["/broken", "/crash"])
def test_a_fault_of_ours_tells_nothing_of_itself(house: House, path_: str) -> None:
    answer = signed_in(house.people.approver).get(path_)
    assert answer.status_code == 500
    assert b"it has been logged" in answer.content
    assert b"not to be told" not in answer.content


def test_browsers_get_pages_and_programs_get_problem_documents(house: House) -> None:
    page_, program = Client(headers=HTML).get("/nowhere"), Client().get("/nowhere")
    assert (page_.status_code, program.status_code) == (404, 404)
    assert b"<h1" in page_.content
    assert program.headers["Content-Type"] == "application/problem+json"
    assert Client(headers=HTML).get("/api/v1/nowhere").headers["Content-Type"] == "application/problem+json"


def test_preferences_are_kept_without_a_script_and_nonsense_is_not(house: House) -> None:
    client = signed_in(house.people.operator)
    client.post(
        "/preferences", {"theme": "dark", "density": "compact", "keys": "off", "zone": "Europe/Vienna"}
    )
    shown = client.get("/styleguide").content.decode()
    assert 'data-theme="dark" data-density="compact" data-keys="off"' in shown
    assert "The preferences are saved." in shown
    assert client.get("/who").content.decode().endswith("Europe/Vienna")
    client.post("/preferences", {"theme": "neon", "zone": "Mars/Olympus"})
    assert client.cookies["theme"].value == "dark"
    assert "The preferences are saved." not in client.get("/styleguide").content.decode()
    client.cookies["zone"] = "Mars/Olympus"
    assert client.get("/who").content.decode().endswith("UTC")


def test_the_palette_finds_nothing_for_a_word_and_nothing_foreign(house: House) -> None:
    client = signed_in(house.people.operator)
    assert client.get("/palette?q=refund").json() == {"results": []}
    assert client.get(f"/palette?q={uuid4()}").json() == {"results": []}


@pytest.mark.parametrize(("kind", "most"), [("css", 20_000), ("js", 25_000)])
def test_all_style_and_all_script_of_ours_is_small_as_it_is_sent(house: House, kind: str, most: int) -> None:
    client = Client(headers={"accept-encoding": "gzip"})
    sent = 0
    for file in sorted((ROOT / "static").rglob(f"*.{kind}")):
        answer = client.get(f"/static/{file.relative_to(ROOT / 'static')}")
        assert answer.headers["Content-Encoding"] == "gzip", file
        assert "max-age=31536000" in answer.headers["Cache-Control"]
        packed, reader = async_to_sync(_whole)(answer), zlib.decompressobj(wbits=31)
        # A browser reads the first of several gzip members and takes it for the file.
        assert (reader.decompress(packed), reader.unused_data) == (file.read_bytes(), b"")
        sent += len(packed)
    assert 0 < sent <= most


async def _whole(answer: Any) -> bytes:
    if answer.is_async:
        return b"".join([part async for part in answer.streaming_content])
    return b"".join(answer.streaming_content)


def test_modules_import_each_other_under_the_addresses_the_pages_use(house: House) -> None:
    text = Client(headers=HTML).get("/account/login/").content.decode()
    known = orjson.loads(text.partition('type="importmap"')[2].partition(">")[2].partition("</script>")[0])[
        "imports"
    ]
    assert known["/static/js/keys.js"] == VersionedStaticFiles().url("js/keys.js")
    assert f'src="{VersionedStaticFiles().url("js/shell.js")}"' in text
    imported = {
        name
        for file in (ROOT / "static/js").glob("*.js")
        for name in re.findall(r'from "\./(\w+\.js)"', file.read_text())
    }
    assert [name for name in imported if f"/static/js/{name}" not in known] == []
