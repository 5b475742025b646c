"""Sessions end: when nothing is done with them, when they are old, and when somebody ends them (R-SEC-11)."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from tenancy.actions import add_member
from tenancy.actions.sign_in import forget_old_sign_ins
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, BrowserSession, Person, TenantSession
from tenancy.web.connection_auth import SignedOut, look_again, of_session
from tests.conftest import House
from tests.doors.pages.people import at, text
from tests.factories.tenancy import make_somebody
from tests.proves import proves

PASSWORD = "a long enough password"
HTML = {"accept": "text/html"}
POLLED = "/runs/changes.html"


def key_of(client: Client) -> str:
    """The value of a browser's session cookie."""
    return str(client.cookies["sessionid"].value)


def row_of(client: Client) -> BrowserSession:
    """What is kept of a browser's session."""
    return BrowserSession.objects.get(digest=sha256(key_of(client).encode()).digest())


def is_in(client: Client) -> bool:
    """Whether the browser is somebody's still."""
    return bool(client.get("/styleguide").status_code == 200)


def age(superuser: psycopg.Connection, client: Client, **back: timedelta) -> None:
    """Move the times of a browser's session back."""
    for name, by in back.items():
        superuser.execute(
            f"UPDATE tenancy_browsersession SET {name} = {name} - %s WHERE id = %s".encode(),
            [by, row_of(client).id],
        )


@pytest.fixture
def person(house: House) -> Person:
    """Somebody with a password."""
    found = house.people.approver.person
    found.set_password(PASSWORD)
    found.save(update_fields=["password"])
    return found


def signed_in(person: Person) -> Client:
    """A browser in which a person has signed in by their password."""
    client = Client(headers=HTML, REMOTE_ADDR="198.51.100.7")
    assert client.post("/account/login/", {"login": person.email, "password": PASSWORD}).status_code == 302
    return client


@proves("R-SEC-11", part="session ids are stored nowhere")
def test_cookie_of_a_session_is_in_no_column_of_the_database(person: Person) -> None:
    client = signed_in(person)
    assert is_in(client)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND data_type IN ('text', 'character varying', 'jsonb', 'bytea') AND table_name NOT IN"
            " (SELECT relname FROM pg_class WHERE relrowsecurity)"
        )
        columns = cursor.fetchall()
        assert ("tenancy_browsersession", "digest") in columns
        for table, column in columns:
            cursor.execute("SELECT has_table_privilege(%s, 'SELECT')", [table])
            if cursor.fetchone() == (True,):
                cursor.execute(
                    f'SELECT count(*) FROM "{table}" WHERE "{column}"::text LIKE %s', [f"%{key_of(client)}%"]
                )
                assert cursor.fetchone() == (0,), (table, column)
        cursor.execute("SELECT to_regclass('django_session'), to_regclass('usersessions_usersession')")
        assert cursor.fetchone() == (None, None)


@proves("R-SEC-11", part="a session ends when nothing is done with it")
def test_session_that_is_idle_ends_and_one_that_is_used_does_not(
    person: Person, superuser: psycopg.Connection
) -> None:
    client = signed_in(person)
    for _ in range(3):
        age(superuser, client, last_seen_at=timedelta(minutes=50))
        assert is_in(client)
    age(superuser, client, last_seen_at=timedelta(minutes=61))
    assert not is_in(client)
    forget_old_sign_ins()
    assert not BrowserSession.objects.filter(person=person).exists()


@proves("R-SEC-11", part="an open page does not keep its session alive")
def test_page_that_asks_by_itself_does_not_keep_a_session_alive(
    house: House, person: Person, superuser: psycopg.Connection
) -> None:
    client = signed_in(person)
    assert is_in(client)
    presence = of_session(key_of(client))
    for _ in range(2):
        age(superuser, client, last_seen_at=timedelta(minutes=25))
        assert client.get(POLLED).status_code in {200, 204}
        assert client.get("/system/circuits").status_code == 200
        look_again(presence)
    age(superuser, client, last_seen_at=timedelta(minutes=25))
    assert client.get(POLLED).status_code == 302
    with pytest.raises(SignedOut):
        look_again(presence)


@proves("R-SEC-11", part="a session has an absolute lifetime")
def test_session_that_is_used_all_day_ends_twelve_hours_after_signing_in(
    person: Person, superuser: psycopg.Connection
) -> None:
    client = signed_in(person)
    age(superuser, client, started_at=timedelta(hours=11, minutes=59))
    assert is_in(client)
    fresh = "another long password"
    changed = {"oldpassword": PASSWORD, "password1": fresh, "password2": fresh}
    assert client.post("/account/password/change/", changed).status_code == 302
    assert is_in(client), "a new password gives the session another key"
    age(superuser, client, started_at=timedelta(minutes=2))
    assert not is_in(client)


@proves("R-SEC-11", part="another key, the same session")
def test_changed_password_gives_another_key_and_ends_the_other_sessions(person: Person) -> None:
    client, other = signed_in(person), signed_in(person)
    before, row = key_of(client), row_of(client).id
    fresh = "another long password"
    client.post(
        "/account/password/change/", {"oldpassword": PASSWORD, "password1": fresh, "password2": fresh}
    )
    assert key_of(client) != before
    assert row_of(client).id == row
    assert is_in(client)
    assert not is_in(other)
    thief = Client(headers=HTML)
    thief.cookies["sessionid"] = before
    assert not is_in(thief)


@proves("R-SEC-11", part="a session never changes hands")
def test_session_never_changes_hands_and_what_was_ended_stays_ended(house: House, person: Person) -> None:
    client = at(house.people.approver)
    assert is_in(client)
    row = row_of(client)
    with pytest.raises(IntegrityError, match="changes hands"), transaction.atomic():
        BrowserSession.objects.filter(id=row.id).update(person=house.people.admin.person)
    with tenant_transaction(house.tenant.id):
        within = TenantSession.objects.get(session_id=row.id)
    at(house.people.admin).post(f"/tenant/sign-ins/{within.id}/end", {"reason": "lost"})
    with (
        tenant_transaction(house.tenant.id),
        pytest.raises(IntegrityError, match="stays so"),
        transaction.atomic(),
    ):
        TenantSession.objects.filter(id=within.id).update(ended_at=None)


@proves("R-SEC-11", part="sessions are listed to their person and ended by them")
def test_person_lists_and_ends_their_own_sessions_and_no_others(house: House, person: Person) -> None:
    client, other = signed_in(person), signed_in(person)
    stranger = at(house.people.second_approver)
    for one in (client, other, stranger):
        assert is_in(one)
    page = text(client.get("/account/sessions/", headers={"user-agent": "Firefox"}))
    assert page.count("This one") == 1
    assert "198.51.100.7" in page
    theirs = row_of(stranger).id
    assert client.post(f"/account/sessions/{theirs}/end").status_code == 404
    assert is_in(stranger)
    assert client.post(f"/account/sessions/{row_of(other).id}/end").status_code == 302
    assert not is_in(other)
    third = signed_in(person)
    assert client.post("/account/sessions/").status_code == 302
    assert not is_in(third)
    assert is_in(client)
    assert client.post(f"/account/sessions/{row_of(client).id}/end").status_code == 302
    assert not is_in(client)


@proves("R-SEC-11", part="sessions are listed to an administrator and ended by them")
def test_administrator_ends_a_session_and_it_is_out_at_its_next_request(house: House, person: Person) -> None:
    client, admin = signed_in(person), at(house.people.admin)
    assert client.get("/styleguide", headers={"user-agent": "Firefox 140"}).status_code == 200
    presence = of_session(key_of(client))
    page = text(admin.get("/tenant/sign-ins"))
    assert person.name in page
    assert "Firefox 140" in page
    with tenant_transaction(house.tenant.id):
        within = TenantSession.objects.get(session_id=row_of(client).id)
    assert at(house.people.operator).post(f"/tenant/sign-ins/{within.id}/end").status_code == 403
    assert is_in(client)
    assert admin.post(f"/tenant/sign-ins/{within.id}/end", {"reason": "A lost laptop"}).status_code == 302
    with pytest.raises(SignedOut):
        look_again(presence)
    with pytest.raises(SignedOut):
        of_session(key_of(client))
    answer = client.get("/styleguide")
    assert answer.headers["Location"].startswith("/account/login/")
    assert is_in(signed_in(person))
    with tenant_transaction(house.tenant.id):
        line = AuditEntry.objects.get(verb="session.end")
    assert (line.object, line.reason) == (f"person:{person.id}", "A lost laptop")


@proves("R-SEC-11", part="an administrator of one tenant neither sees nor ends another's sessions")
def test_session_of_a_person_of_two_tenants_is_ended_in_the_administrators_alone(
    house: House, person: Person
) -> None:
    second = house.people.other_tenant
    add_member(second.id, person, Role.AUDITOR)
    client = signed_in(person)
    client.post("/tenant/switch", {"tenant": str(house.tenant.id)})
    assert is_in(client)
    session = row_of(client).id
    next_door = at(make_somebody(second, Role.ADMIN))
    assert person.name not in text(next_door.get("/tenant/sign-ins")), "it never acted there"
    with tenant_transaction(house.tenant.id):
        here = TenantSession.objects.get(session_id=session)
    assert next_door.post(f"/tenant/sign-ins/{here.id}/end", {"reason": "x"}).status_code == 404
    client.post("/tenant/switch", {"tenant": str(second.id)})
    assert is_in(client)
    with tenant_transaction(second.id):
        there = TenantSession.objects.get(session_id=session)
    next_door.post(f"/tenant/sign-ins/{there.id}/end", {"reason": "x"})
    assert is_in(client), "in the other tenant it goes on"
    client.post("/tenant/switch", {"tenant": str(second.id)})
    assert (
        second.name not in text(client.get("/styleguide")).partition("<nav")[0].partition("summary")[2][:200]
    )
    with pytest.raises(SignedOut):
        of_session(key_of(client), second.id)
    assert of_session(key_of(client), house.tenant.id).tenant == house.tenant.id
    at(house.people.admin).post(f"/tenant/sign-ins/{here.id}/end", {"reason": "x"})
    assert not is_in(client)
    assert not BrowserSession.objects.filter(id=session).exists()
