"""Addresses of pages that have changed lead to the new ones, and take no form."""

from __future__ import annotations

import pytest
from django.test import Client

RUN = "0190b0a5-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/approvals/together?one=1&one=2", "/approvals/bulk?one=1&one=2"),
        ("/outside", "/destinations"),
        (f"/runs/{RUN}/ask?wish=cancel", f"/runs/{RUN}/actions?wish=cancel"),
        ("/tool-proposals", "/change-requests"),
        ("/tool-servers", "/mcp-servers"),
        ("/tool-servers/shop", "/mcp-servers/shop"),
    ],
)
def test_moved_page_redirects_reads_and_refuses_forms(client: Client, old: str, new: str) -> None:
    answer = client.get(old)
    assert (answer.status_code, answer.headers["Location"]) == (302, new)
    assert client.post(old).status_code == 405
