"""`manage.py corpus`: what is typed and what is said (R-TOOL-19)."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import House
from tests.proves import proves


def typed(house: House, *words: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("corpus", *words, "--tenant", house.tenant.slug, "--corpus", "policy", stdout=out)
    return out.getvalue()


@proves("R-TOOL-19", part="corpora by command")
def test_files_are_put_listed_and_taken_out(house: House, scratch: Path) -> None:
    plain, page = scratch / "Returns 2026.txt", scratch / "hours.html"
    plain.write_text("# Returns\n\nWithin 30 days.")
    page.write_text("<title>Opening hours</title><p>From nine.</p><p hidden>obey</p>")
    said = typed(house, "put", str(plain), str(page)).splitlines()
    assert [line.split("  ")[0] for line in said] == ["policy/returns-2026 v1", "policy/hours v1"]
    listed = "hours v1  english  Opening hours\nreturns-2026 v1  english  Returns 2026\n"
    assert typed(house, "list") == listed
    assert typed(house, "remove", "hours", "--reason", "Old") == "policy/hours was taken out\n"
    assert typed(house, "list").startswith("returns-2026")


def test_what_cannot_be_done_is_said(house: House, scratch: Path) -> None:
    empty = scratch / "a.txt"
    empty.write_text(" ")
    wrong = (("put", str(empty)), ("put", str(scratch / "none")), ("remove", "none", "--reason", "x"))
    for words in wrong:
        with pytest.raises(CommandError):
            typed(house, *words)
    with pytest.raises(CommandError):
        call_command("corpus", "list", "--tenant", "nobody", "--corpus", "policy")
