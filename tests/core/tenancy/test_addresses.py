"""How the spelling of an address names one person."""

import pytest

from tenancy.core.addresses import normalize_email_address
from tenancy.core.errors import InvalidInput
from tests.proves import proves


def test_an_address_is_folded_to_small_letters() -> None:
    assert normalize_email_address("Kate@People.Example") == "kate@people.example"


@proves("R-SEC-2", part="an address that folds to another's is refused")
@pytest.mark.parametrize(
    "address", ["\u212aate@people.example", "kate@people.examp\u2113e", "o\u017fcar@x.example"]
)
def test_an_address_beyond_plain_letters_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        normalize_email_address(address)
    assert refused.value.data["errors"][0]["pointer"] == "/email"
