"""What may be shown of a text while it is being written: nothing that is taken out of the whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proves import proves
from traces.core.redaction import redact_begun, redact_secrets

KEY = "sk-abcdefghijklmnopqrstuvwxyz012345"
BLOCK = """-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED

MIIEowIBAAKCAQEA x1
-----END RSA PRIVATE KEY-----"""
SECRETS = {
    "key": (f"the key is {KEY} as you know", KEY),
    "bearer": ("Authorization: Bearer abcdefghijklmnopqrstuvwx and on", "abcdefghijklmnopqrstuvwx"),
    "assigned": ("set password=correct-horse-battery; done and over", "correct-horse-battery"),
    "address": ("see https://bob:hunter2horse@host.example/x for it", "hunter2horse"),
    "block": (f"here:\n{BLOCK}\nand on", "MIIEowIBAAKCAQEA"),
    "field": (json.dumps({"password": "correct horse battery", "on": True}), "correct horse battery"),
    "field within": (
        json.dumps({"note": json.dumps({"api_key": "one two three four"}), "on": 1}), "one two three four",
    ),
    "escaped": ('{"note": "\\u0073k-abcdefghijklmnopqrstuvwxyz012345 and on", "x": 1}', "k-abcdefghijkl"),
    "brackets": (f"[note] the key is {KEY} as you know", KEY),
}  # fmt: skip


@proves("R-TRACE-5", part="text that is still being written")
@pytest.mark.parametrize("name", SECRETS)
def test_no_part_of_a_secret_shows_at_any_moment(name: str) -> None:
    text, secret = SECRETS[name]
    assert secret not in redact_secrets(text.encode())[0].decode()
    for end in range(len(text) + 1):
        shown = redact_begun(text[:end])
        assert not any(part in shown for part in (secret[:4], secret[4:9], secret[-4:])), (end, shown)


def test_a_password_in_an_address_is_waited_for_in_any_script() -> None:
    for end in range(len("see https://боб:пароль") + 1):
        assert "пар" not in redact_begun("see https://боб:пароль"[:end])


@pytest.mark.parametrize("begins", [r":\/\/", r":\u002f\u002F", r"\u003A//", r":\\\/\\\/"])
def test_such_an_address_is_waited_for_in_json_too(begins: str) -> None:
    text = f'{{"see": "https{begins}боб:пароль@host.example/x and on", "on": 1}}'
    for end in range(text.index("@") + 1):
        assert "пар" not in redact_begun(text[:end])


def test_a_private_key_that_never_ends_does_not_take_the_rest_of_the_text() -> None:
    begun, rest = f"{BLOCK.splitlines()[0]}\nMIIEowIBAAKCAQEA.", "and on, word by word: " * 1_000
    assert redact_begun(begun + rest[:20_000]) == ""
    shown = redact_begun(begun + rest)
    assert shown.startswith("[redacted:private_key]")
    assert shown.endswith("word by word: ")
    assert "MIIE" not in shown


def test_what_is_shown_grows_by_whole_words() -> None:
    text = "One two, three: [f1] is 4.20 in all."
    shown = [redact_begun(text[:end]) for end in range(len(text) + 1)]
    assert list(dict.fromkeys(shown)) == [
        "", "One ", "One two, ", "One two, three: ", "One two, three: [f1] ", "One two, three: [f1] is ",
        "One two, three: [f1] is 4.20 ", "One two, three: [f1] is 4.20 in ",
    ]  # fmt: skip


def test_text_without_blanks_grows_letter_by_letter() -> None:
    assert redact_begun("東京では夜です") == "東京では夜です"


@given(st.text(alphabet='ab{}[]":\\ -=/@\nB', max_size=60))
def test_any_text_can_be_shown(text: str) -> None:
    shown = redact_begun(text + " password=secret1234 ")
    assert "secret1234" not in shown
