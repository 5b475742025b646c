"""The pages of tools: what is shown, changed, previewed and switched (R-UI-5, R-TOOL-4)."""

from typing import Any

import pytest
from django.test import Client

from orchestrator.publishing.actions.versions import active_tools, publish_tools
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.api.doors import some_proposal
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import HOSTILE, at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

TOOL = "/tools/calculator.evaluate"


def changed(admin: Client, button: str = "change", **typed: str) -> Any:
    """The form of the tool's page, with some fields typed over, sent."""
    return form_with(admin.get(TOOL), button).send(admin, button, **typed)


def version(world: World) -> int:
    """The active version of the calculator."""
    with tenant_transaction(world.id):
        return active_tools()["calculator.evaluate"].version


@proves("R-TOOL-4", part="page")
@proves("R-UI-5", part="versions and their differences")
def test_a_change_on_the_page_makes_a_version_that_the_page_shows(admin: Client, world: World) -> None:
    answer = changed(admin, price_usd="0.25", reason="It costs now")
    assert (answer.status_code, answer["Location"]) == (302, TOOL)
    page = text(admin.get(TOOL))
    assert "Version 2" in page
    assert "/price_usd" in page
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="tool.change")
    assert (entry.principal, entry.reason) == (world.people.admin.id, "It costs now")


@proves("R-TOOL-4", part="less of a guard waits on a page, with its difference")
def test_a_lower_class_waits_on_the_page_with_its_difference(admin: Client, world: World) -> None:
    make_somebody(world.house.tenant, Role.ADMIN)
    page = "/tools/mail.send"
    looked = form_with(admin.get(page), "preview").send(
        admin, "preview", risk="local_write", reason="It only writes here"
    )
    assert "Its class falls from network to local_write." in text(looked)
    answer = form_with(admin.get(page), "change").send(
        admin, "change", risk="local_write", reason="It only writes here"
    )
    assert answer["Location"] == "/tool-proposals"
    waiting = text(admin.get("/tool-proposals"))
    assert "Its class falls from network to local_write." in waiting
    assert "/risk" in waiting
    again = form_with(admin.get(page), "change").send(admin, "change", risk="local_write", reason="Again")
    assert again.status_code == 409
    with tenant_transaction(world.id):
        assert active_tools()["mail.send"].risk.value == "network"


@proves("R-TOOL-4", part="what is another by now is shown as that, and closed with the reason")
def test_what_waits_about_another_version_says_so_and_offers_no_agreement(
    admin: Client, world: World
) -> None:
    second = make_somebody(world.house.tenant, Role.ADMIN)
    row = some_proposal(world.id, "mail.send")
    assert 'name="agree"' in text(at(second).get("/tool-proposals"))
    with tenant_transaction(world.id):
        ToolProposal.objects.filter(id=row).update(status="withdrawn")
        ToolProposal.objects.create(
            tenant_id=world.id, kind="change", tool="mail.send", tag="of old", body={"change": {}},
            weaker=["It is."], reason="Too slow", by=fresh_id(), owner=fresh_id(), at=database_now(),
        )  # fmt: skip
    shown = text(at(second).get("/tool-proposals"))
    assert "The tool has changed since it was asked for. Nobody can agree to this any more." in shown
    assert 'name="agree"' not in shown
    form_with(admin.get("/tools/mail.send"), "change").send(admin, "change", timeout_ms="999", reason="So")
    settled = text(at(second).get("/tool-proposals"))
    assert "outdated by" in settled
    assert "Nothing waits" in settled


@proves("R-UI-5", part="impact preview")
def test_a_preview_says_what_a_change_would_do_and_does_nothing(admin: Client, world: World) -> None:
    world.submit("tool-loop", "How much is 1 + 1?")
    answer = changed(admin, "preview", risk="network", reason="Perhaps")
    page = text(answer)
    assert answer.status_code == 200
    assert "nothing is changed yet" in page
    assert "Every call of a new run asks a person." in page
    assert "The boundary of these workflows allows no network call: tool-loop." in page
    assert "in each of 1 runs under way" in page
    assert version(world) == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"price_usd": "-1"}, "greater than or equal to 0"),
        ({"price_usd": "dear"}, "Enter a number"),
        ({"reason": ""}, "This field is required"),
        ({"risk": "network", "approval": "never"}, "always put before a person"),
        ({"timeout_ms": "0"}, "greater than or equal to 1"),
        ({"risk": "harmless"}, "not one of the available choices"),
    ],
)
def test_a_wrong_field_is_named_the_rest_is_kept_and_nothing_changes(
    admin: Client, world: World, typed: dict[str, str], said: str
) -> None:
    answer = changed(admin, **{"reason": "kept reason", **typed})
    assert answer.status_code == 422
    assert said in text(answer)
    assert "Nothing was changed yet." in text(answer)
    assert ("kept reason" in text(answer)) == ("reason" not in typed)
    assert version(world) == 1


def test_a_tool_that_somebody_else_changed_meanwhile_is_412_and_can_be_sent_again(
    admin: Client, world: World
) -> None:
    form = form_with(admin.get(TOOL), "change")
    changed(admin, price_usd="0.25", reason="first")
    late = form.send(admin, "change", price_usd="0.50", reason="second")
    assert late.status_code == 412
    assert "in the meantime" in text(late)
    assert form_with(late, "change").send(admin, "change").status_code == 302
    assert version(world) == 3


@proves("R-TOOL-4", part="disabling on the page")
def test_a_tool_is_disabled_and_enabled_with_a_reason(admin: Client, world: World) -> None:
    assert form_with(admin.get(TOOL), "off").send(admin, "off").status_code == 422
    assert form_with(admin.get(TOOL), "off").send(admin, "off", reason="It lies").status_code == 302
    page = text(admin.get(TOOL))
    assert "This tool takes no call." in page
    assert "It lies" in page
    assert "Disabled" in text(admin.get("/tools"))
    assert form_with(admin.get(TOOL), "on").send(admin, "on", reason="It does not").status_code == 302
    assert "This tool takes no call." not in text(admin.get(TOOL))


def test_what_was_the_same_is_said_to_be_the_same(admin: Client, world: World) -> None:
    answer = changed(admin, reason="Nothing")
    assert "Nothing was different" in text(admin.get(answer["Location"]))
    assert version(world) == 1


def test_only_an_administrator_gets_the_forms(world: World) -> None:
    page = text(at(world.people.auditor).get(TOOL))
    assert "Changing a tool needs the role admin" in page
    assert "Make version" not in page


@proves("R-SEC-5", part="tools: outside text")
def test_hostile_text_of_a_tool_is_shown_and_never_acts(admin: Client, world: World) -> None:
    shipped = [tool.spec for tool in shipped_tools().values()]
    hostile = shipped[0].evolve(name="odd.one", description=HOSTILE, side_effects=HOSTILE)
    with tenant_transaction(world.id):
        publish_tools(world.id, (*shipped, hostile), by=None)
    changed(admin, price_usd="1", reason=HOSTILE)
    for path in ("/tools", "/tools/odd.one", TOOL, "/tenant/audit"):
        page = text(admin.get(path))
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page
    page = text(admin.get("/tools/odd.one"))
    assert "U+202E" in page
    assert "{{ 7|add:7 }}" in page.replace("&#x27;", "'")
