"""The shell as every page has it: signing in, who may see what, headers, refusals (R-SEC-2, R-SEC-5)."""

from __future__ import annotations

from django.test import Client

from tests.conftest import House


def test_the_sign_in_page_is_there(house: House) -> None:
    answer = Client().get("/account/login/", headers={"accept": "text/html"})
    assert answer.status_code == 200
    assert b"Sign in" in answer.content


def test_a_member_sees_their_sessions(house: House) -> None:
    client = Client()
    client.force_login(house.people.admin.person)
    for path in ("/account/sessions/", "/preferences", "/account/2fa/", "/account/password/change/", "/nowhere"):
        answer = client.get(path, headers={"accept": "text/html"})
        assert b"Interlock" in answer.content, path
        print(path, answer.status_code)
