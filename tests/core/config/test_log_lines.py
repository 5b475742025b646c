"""What a line of the log shows of an exception."""

import sys

import pytest

from config.observability.logs import choose_log_renderer, without_codes
from tests.proves import proves


@proves("R-SEC-8", part="no locals in the log")
@pytest.mark.parametrize("style", ["auto", "console", "plain"])
def test_an_exception_is_shown_without_the_locals_of_its_frames(style: str) -> None:
    key = "ilk_" + "s3cret" * 4
    try:
        raise ValueError(len(key))
    except ValueError:
        shown = str(
            choose_log_renderer(style, tty=False)(
                None, "error", {"event": "failed", "exc_info": sys.exc_info()}
            )
        )
    assert "ValueError: 28" in shown
    assert "s3cret" * 2 not in shown


@proves("R-SEC-2", part="no code that brings somebody in is in the log")
@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (
            "GET /account/oidc/sso/login/callback/?code=s3cret&state=x",
            "GET /account/oidc/sso/login/callback/?…",
        ),
        ("GET /account/password/reset/key/7-s3cret/", "GET /account/password/reset/key/…/"),
        ("GET /account/password/reset/key/7-s3cret/?a=b", "GET /account/password/reset/key/…/?…"),
        ("GET /runs?status=failed", "GET /runs?status=failed"),
    ],
)
def test_an_address_is_logged_without_what_brings_somebody_in(asked: str, shown: str) -> None:
    assert without_codes(None, "info", {"request": asked})["request"] == shown
