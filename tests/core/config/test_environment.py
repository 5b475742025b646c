"""What the outside says, and in which order it is believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from config.databases import build_database_settings
from config.devstack.child_process import open_to_others
from config.devstack.secrets_file import secrets_in
from config.env import Environment, ExplicitSettings, unwrap_secret
from tests.proves import proves


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without `.env`, a data folder of this test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("INTERLOCK_", "OPENAI", "ANTHROPIC"))]:
        if name != "INTERLOCK_DATA_DIR":
            monkeypatch.delenv(name)
    return tmp_path


def _note(folder: Path, **known: str) -> None:
    (folder / "servers.json").write_text(json.dumps(known))


@proves("R-API-10", part="environment")
def test_the_environment_is_read_by_its_published_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b",
        "INTERLOCK_MODEL": "openai:m", "DATABASE_URL": "postgresql://x", "REDIS_URL": "redis://y",
        "INTERLOCK_PORT": "8123",
    }  # fmt: skip
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    found = Environment()
    assert (found.openai_base_url, found.model, found.port) == ("http://127.0.0.1:9/v1", "openai:m", 8123)
    secret = (found.openai_api_key, found.anthropic_api_key, found.database_url, found.redis_url)
    assert [unwrap_secret(one) for one in secret] == ["a", "b", "postgresql://x", "redis://y"]


@proves("R-SEC-8", part="off by default")
def test_nothing_is_open_by_default() -> None:
    found = Environment()
    assert (found.debug, found.secret_key, found.embedded, found.host) == (False, None, False, "127.0.0.1")


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "INTERLOCK_OIDC_SECRET", "INTERLOCK_SMTP_URL"]
)
def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "sk-very-secret")
    assert "very-secret" not in repr(Environment())


@proves("R-SEC-8", part="the address of a model's server carries no secret")
@pytest.mark.parametrize(
    "url",
    ["http://me:very-secret@host/v1", "http://very-secret@host", "http://h/v1?key=very-secret", "//a@b#c",
     # What the library itself refuses, it quotes.
     "http://u:very-secret@h℀/v1", "http://u:p@[very-secret]/"],
)  # fmt: skip
def test_an_address_that_carries_a_secret_is_refused_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ValidationError, match="OPENAI_BASE_URL") as refused:
        Environment()
    assert "very-secret" not in str(refused.value)


def test_a_wrong_value_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PORT", "99999")
    with pytest.raises(ValidationError, match="INTERLOCK_PORT"):
        Environment()


def test_the_running_house_is_found_by_its_notes(elsewhere: Path) -> None:
    _note(elsewhere, DATABASE_URL="postgresql://noted", DATABASE_OWNER_URL="postgresql://owner")
    assert unwrap_secret(Environment().database_url) == "postgresql://noted"
    assert unwrap_secret(Environment().database_owner_url) == "postgresql://owner"


def test_a_given_database_is_never_paired_with_the_noted_owner(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _note(elsewhere, DATABASE_URL="postgresql://noted", DATABASE_OWNER_URL="postgresql://owner")
    monkeypatch.setenv("DATABASE_URL", "postgresql://given")
    assert unwrap_secret(Environment().database_url) == "postgresql://given"
    assert Environment().database_owner_url is None


def test_the_supervisor_does_not_take_its_notes_for_an_order(elsewhere: Path) -> None:
    _note(elsewhere, DATABASE_URL="postgresql://noted")
    assert ExplicitSettings().database_url is None


def test_secrets_are_made_once_and_kept_private(elsewhere: Path) -> None:
    made = secrets_in(elsewhere)
    assert secrets_in(elsewhere) == made
    assert (elsewhere / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert len({made.superuser, made.owner, made.app, made.auditor, made.secret_key}) == 5


def test_a_socket_address_becomes_django_s_words() -> None:
    entry = build_database_settings("postgresql://app:p%40ss@/house?host=/run/x&sslmode=disable", pool_size=3)
    assert (entry["HOST"], entry["NAME"], entry["USER"], entry["PASSWORD"]) == (
        "/run/x",
        "house",
        "app",
        "p@ss",
    )
    assert entry["OPTIONS"]["sslmode"] == "disable"
    assert entry["OPTIONS"]["pool"]["max_size"] == 3


def test_a_closed_folder_above_closes_what_is_below(tmp_path: Path) -> None:
    below = tmp_path / "closed" / "file"
    below.parent.mkdir(mode=0o700)
    below.touch(mode=0o644)
    assert not open_to_others(below)


@pytest.mark.parametrize(
    ("url", "host", "port", "tls", "ssl"),
    [
        ("smtp://bob:p%40ss@mail.example", "mail.example", 587, True, False),
        ("smtps://mail.example", "mail.example", 465, False, True),
        ("smtp+plain://mail.example:2525", "mail.example", 2525, False, False),
    ],
)
@proves("R-BUDGET-10", part="mail server")
def test_a_mail_server_is_named_by_one_address(url: str, host: str, port: int, tls: bool, ssl: bool) -> None:
    found = Environment(INTERLOCK_SMTP_URL=SecretStr(url)).mail
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"]) == (host, port)
    assert (found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"]) == (tls, ssl)
    if "@mail" in url:
        assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("bob", "p@ss")


def test_without_a_mail_server_letters_go_to_the_log_and_a_wrong_one_is_refused() -> None:
    assert Environment().mail["EMAIL_BACKEND"].endswith("console.EmailBackend")
    for wrong in ("http://mail.example", "smtp://"):
        with pytest.raises(ValueError, match="INTERLOCK_SMTP_URL"):
            _ = Environment(INTERLOCK_SMTP_URL=SecretStr(wrong)).mail


@proves("A8", part="a letter leads where the operator says")
@pytest.mark.parametrize(
    ("smtp", "url", "hosts", "mailed"),
    [
        ("", "", "interlock.example", False),
        ("smtp://mail", "", "interlock.example,127.0.0.1", True),
        ("smtp://mail", "", "*", False),
        ("smtp://mail", "", "localhost, .example.com", False),
        ("smtp://mail", "https://interlock.example", "*", True),
    ],
)
def test_finding_1_first_links_are_not_mailed_where_the_inviter_could_choose_their_server(
    smtp: str, url: str, hosts: str, mailed: bool
) -> None:
    found = Environment(
        INTERLOCK_SMTP_URL=SecretStr(smtp) if smtp else None, INTERLOCK_URL=url, INTERLOCK_ALLOWED_HOSTS=hosts
    )
    assert found.mails_first_links is mailed
