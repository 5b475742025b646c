"""What a line of the log shows of an exception."""

import sys

import pytest

from config.logs import renderer
from tests.proves import proves


@proves("R-SEC-8", part="no locals in the log")
@pytest.mark.parametrize("style", ["auto", "console", "plain"])
def test_an_exception_is_shown_without_the_locals_of_its_frames(style: str) -> None:
    key = "ilk_" + "s3cret" * 4
    try:
        raise ValueError(len(key))
    except ValueError:
        shown = str(
            renderer(style, tty=False)(None, "error", {"event": "failed", "exc_info": sys.exc_info()})
        )
    assert "ValueError: 28" in shown
    assert "s3cret" * 2 not in shown
