"""docs/first-tenant.md, executed: each command as it is written, each page step by a browser (R-SEC-10)."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from config.devstack import process_specs
from tests.browser.started import PATIENCE, Terminal, fresh_reader, shell_blocks
from tests.proves import proves

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PAGE = "docs/first-tenant.md"
PASSWORD = "a long enough password"
TEA, COFFEE = "Ada likes her tea without milk.", "Grace takes her coffee black."


def set_password(page: Page, link: str, email: str) -> None:
    """Open the link of a first password, set it, and sign in."""
    page.goto(link)
    page.get_by_label("New Password", exact=True).fill(PASSWORD)
    page.get_by_label("New Password (again)").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(re.compile(r"://[^/]+/$"))


def link_in(text: str) -> str:
    """The link of a first password in what a command wrote."""
    return next(line for line in text.splitlines() if "/account/password/reset/key/" in line)


def wait_until_over(terminal: Terminal) -> dict[str, Any]:
    """The run that the reader submitted last, once it has ended or waits for a person."""
    poll = (
        "for i in $(seq 400); do "
        'S=$(curl -s $API/runs/$RUN -H "Authorization: Bearer $CLIENT"); '
        'case "$S" in *\'"status":"queued"\'*|*\'"status":"in_progress"\'*) sleep 0.3;; '
        '*) break;; esac; done; echo "$S"'
    )
    found: dict[str, Any] = json.loads(terminal.run(poll))
    return found


def approve(page: Page) -> None:
    """Press Approve until it is taken: what arrives on the page disarms it for a moment, also just before."""
    button = page.get_by_role("button", name=re.compile("^Approve"))
    for _ in range(5):
        expect(page.locator("[data-disarmed]")).to_have_count(0, timeout=PATIENCE * 1000)
        button.first.click()
        with suppress(AssertionError):
            expect(button).to_have_count(0, timeout=5_000)
            return
    raise AssertionError(page.locator("main").inner_text())


@proves("R-SEC-10", part="a tenant of one's own: the page from the start to its first governed change")
def test_the_page_of_a_first_tenant_is_true_to_its_last_command(chromium: Browser) -> None:
    port, tools, model = process_specs.free_port(), process_specs.free_port(), process_specs.free_port()
    with fresh_reader(port) as reader:
        ports = {8000: port, 8100: tools, 11434: model}
        blocks = iter(shell_blocks(PAGE, ports))
        up = reader.start(next(blocks))
        up.wait_for("Interlock is up at")
        assert not [line for line in up.lines if "demo.example" in line]

        second = reader.terminal()
        ada = chromium.new_page()
        set_password(ada, link_in(second.run(next(blocks))), "ada@acme.example")
        second.run(next(blocks))

        third = reader.start(next(blocks))
        third.wait_for("Uvicorn running on")
        offered = json.loads(second.run(next(blocks)).splitlines()[-1])["offered"]
        assert {one["tool"]: one["state"] for one in offered} == {
            "find_notes": "quarantined", "add_note": "quarantined",
        }  # fmt: skip
        admitted = [json.loads(line) for line in second.run(next(blocks)).splitlines()]
        assert [one["needs_approval"] for one in admitted] == [False, True]
        second.run(next(blocks))
        reader.start(next(blocks)).wait_for("Answering at")
        second.run(next(blocks))

        second.run(next(blocks))
        assert wait_until_over(second)["status"] == "completed"
        result = json.loads(second.run(next(blocks)))
        assert (result["status"], result["scripted"]) == ("completed", False)
        assert TEA in result["output"]
        assert [fact["values"] for fact in result["facts"].values()] == [{"result": TEA}]
        ada.goto(f"http://127.0.0.1:{port}/runs")
        expect(ada.locator("main .chip", has_text="Succeeded").first).to_be_visible()

        bob = chromium.new_context().new_page()
        set_password(bob, link_in(second.run(next(blocks))), "bob@acme.example")
        second.run(next(blocks))
        assert wait_until_over(second)["status"] == "awaiting_gate"
        assert not [line for line in third.lines if "added:" in line]
        bob.get_by_role("link", name="Approvals").first.click()
        expect(bob.get_by_text(COFFEE).first).to_be_visible()
        approve(bob)
        assert third.wait_for("added:") == f"added: {COFFEE}"
        assert wait_until_over(second)["status"] == "completed"
        result = json.loads(second.run(next(blocks)))
        assert "There are 2 notes now." in result["output"]
        assert next(blocks, None) is None
        assert len([line for line in third.lines if "added:" in line]) == 1
