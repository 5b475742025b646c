"""What must not enter a trace is taken out, wherever it hides; nothing else is touched."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proves import proves
from traces.core.redaction import format_redaction_mark, has_luhn_check_digit, marked_places, redact_secrets

SECRETS = {
    "api_key": [
        "ilk_" + "0a" * 16 + "_" + "abcdefgh" * 6, "sk-abcdefghijklmnop1234", "sk-ant-api03-aaaa-bbbb_cccc",
        "sk_live_abcdefghijklmnop", "ghp_" + "a1" * 18, "github_pat_" + "a1" * 20, "AKIAABCDEFGHIJKLMNOP",
        "AIza" + "b" * 35, "xoxb-1234567890-abc", "glpat-abcdefghij0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ],
    "bearer": ["Bearer abcdefghijklmnop1234==", "authorization: basic dXNlcjpwYXNzd29yZDE="],
    "private_key": [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n",
    ],
    "password": ["postgres://app:hunter2@db.example/x"],
    "secret_field": ["?password=hunter2&x=1", "API_KEY=abcdef"],
}  # fmt: skip
PERSONAL = {
    "e_mail": ["bob.o'hara+x@mail.example.com", "é.b@example.org"],
    "card": ["4111 1111 1111 1111", "4111-1111-1111-1111", "5500005555555559", "371449635398431"],
    "iban": [
        "DE89 3704 0044 0532 0130 00",
        "GB29NWBK60161331926819",
        "FR14 2004 1010 0505 0001 3M02 606 AND",
    ],
}
EVERY = [(kind, text) for kinds in (SECRETS, PERSONAL) for kind, texts in kinds.items() for text in texts]
PIECES = (
    st.sampled_from([text for _, text in EVERY])
    | st.text(max_size=8)
    | st.sampled_from(["\n", "\\", '"', " "])
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
JSON = st.recursive(
    TEXTS | st.integers() | st.none() | st.sampled_from([4111111111111111, 0.5]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("password"), inner, max_size=3)
    ),
)


@proves("R-TRACE-5")
@pytest.mark.parametrize(("kind", "text"), EVERY)
@pytest.mark.parametrize("form", ["{}", "before\n{}\nafter", "({})"])
def test_each_secret_is_taken_out_and_the_rest_stays(kind: str, text: str, form: str) -> None:
    data, found = redact_secrets(form.format(text).encode(), personal=True)
    assert kind in [one.kind for one in found]
    assert format_redaction_mark(kind).encode() in data
    assert data.startswith(form.partition("{}")[0].encode())


@proves("R-TRACE-5", part="escaped")
@pytest.mark.parametrize(("kind", "text"), EVERY)
def test_an_escape_before_a_secret_does_not_hide_it(kind: str, text: str) -> None:
    body = json.dumps({"reply": f"line\n{text}\nline", "n": 1.50, "inner": json.dumps({"deep": f"\t{text}"})})
    data, found = redact_secrets(body.encode(), personal=True)
    assert sum(one.count for one in found if one.kind == kind) >= 2
    value = json.loads(data)
    assert value["reply"].startswith("line\n")
    assert json.loads(value["inner"])["deep"].startswith("\t")
    assert b'"n": 1.5' in data


def test_unicode_escapes_do_not_hide_a_secret_either() -> None:
    text = "".join(f"\\u{ord(letter):04x}" for letter in "sk-abcdefghijklmnop1234")
    data, found = redact_secrets(f'{{"a":"{text}"}}'.encode())
    assert [one.kind for one in found] == ["api_key"]
    assert json.loads(data) == {"a": "[redacted:api_key]"}


def test_a_field_that_is_named_a_secret_loses_its_text_and_nothing_else_does() -> None:
    body = b'{"Password" : "hu\\"nter2", "note":"a password", "password":{"type":"string"}, "secret":""}'
    data, found = redact_secrets(body)
    assert data == body.replace(b'"hu\\"nter2"', b'"[redacted:secret_field]"')
    assert [(one.kind, one.count) for one in found] == [("secret_field", 1)]


def test_personal_data_stays_where_policy_does_not_forbid_it() -> None:
    for texts in PERSONAL.values():
        for text in texts:
            assert redact_secrets(text.encode()) == (text.encode(), ())


def test_a_card_number_that_is_a_json_number_becomes_a_marked_text() -> None:
    data, _ = redact_secrets(
        b'{"card":4111111111111111,"order":4111111111111112,"x":1.4111111111111111}', personal=True
    )
    assert data == b'{"card":"[redacted:card]","order":4111111111111112,"x":1.4111111111111111}'


@pytest.mark.parametrize(
    "text",
    [
        "", "risk-assessment-management-plan", "task-12345678901234567890", "the bearer of news", "a@b",
        "4111 1111 1111 1112", "DE00 3704 0044 0532 0130 00", "2026-11-21T12:00:00Z", '{"a":[1,2.50,"x"]}',
        "-----BEGIN CERTIFICATE-----",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact_secrets(text.encode(), personal=True) == (text.encode(), ())


@given(TEXTS)
def test_redacting_text_twice_changes_nothing_more(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    once, _ = redact_secrets(data, personal=True)
    assert redact_secrets(once, personal=True) == (once, ())


@settings(max_examples=60)
@given(JSON)
def test_json_stays_json_and_redacting_it_twice_changes_nothing_more(value: Any) -> None:
    data = json.dumps(value).encode()
    once, found = redact_secrets(data, personal=True)
    json.loads(once)
    assert redact_secrets(once, personal=True) == (once, ())
    assert (once == data) == (found == ())


@given(st.binary(max_size=60))
def test_bytes_that_are_no_text_pass(data: bytes) -> None:
    clean, found = redact_secrets(data, personal=True)
    assert found or clean == data


MALICE: dict[str, Callable[[int], bytes]] = {
    "beginnings": lambda n: b"-----BEGIN PRIVATE KEY-----" * (n // 27),
    "one word": lambda n: b"a" * n + b"@",
    "addresses": lambda n: b"a@" * (n // 2),
    "accounts": lambda n: b"DE89 " * (n // 5),
    "cards": lambda n: b"4111 " * (n // 5),
    "bearers": lambda n: b"bearer " * (n // 7),
    "schemes": lambda n: b"://a:" * (n // 5),
    "backslashes": lambda n: b'{"a":"' + b"\\\\" * (n // 2) + b'"}',
    "tokens": lambda n: b"eyJaaaaaaaa.eyJ" * (n // 15),
    "quotes": lambda n: b'"' * (n + 1),
}


@pytest.mark.parametrize("sort", MALICE)
def test_malice_takes_time_in_proportion_to_its_length(sort: str) -> None:
    in_proportion(MALICE[sort], 200_000)


@pytest.mark.slow
@pytest.mark.parametrize("sort", MALICE)
def test_two_megabytes_of_malice_take_time_in_proportion_to_their_length(sort: str) -> None:
    in_proportion(MALICE[sort], 2_000_000)


def in_proportion(malice: Callable[[int], bytes], size: int) -> None:
    """Sixteen times the text: what grows with its square would take 256 times as long."""

    def took(size: int) -> float:
        text = malice(size)
        before = time.process_time()
        redact_secrets(text, personal=True)
        return time.process_time() - before

    small = min(took(size // 16) for _ in range(3))
    assert took(size) < 80 * max(small, 0.002)


def test_luhn() -> None:
    assert has_luhn_check_digit("4111 1111 1111 1111")
    assert not has_luhn_check_digit("4111 1111 1111 1112")
    assert not has_luhn_check_digit("0")


def test_the_places_of_marks_are_found_at_every_depth_and_in_names() -> None:
    mark = format_redaction_mark("secret_field")
    value = {"a/b": [{"x": "no"}, {"password": mark}], f"~{mark}": 1, "text": f"is {mark}.", "n": 3}
    assert marked_places(value) == ("/a~1b/1/password", f"/~0{mark}", "/text")
    assert marked_places({"text": "[redacted] and [redacted:A]"}) == ()
