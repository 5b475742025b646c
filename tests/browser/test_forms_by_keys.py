"""The forms of the console are filled and sent by keys alone (R-UI-11)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageAs
from tests.browser.test_keyboard import to
from tests.conftest import House
from tests.factories.world import World, make_world
from tests.proves import proves

# A form by the page it stands on: what is typed at each place the Tab key comes to ("\n" is Enter, " " is
# Space), which button sends it, and what the page says then.
Form = tuple[str, Mapping[str, str], str, str]
FORMS: dict[str, Form] = {
    "key": ("/tenant/keys", {"#id_label": "nightly"}, "Make the key", "shown this once"),
    "person": (
        "/tenant/people",
        {
            "#id_email": "new@people.example", "#id_name": "Newly Come", "#id_role": "reviewer",
            "form[action$=invite] summary": "\n", "#id_max_amount": "50",
        },
        "Add the person", "sets a password by this link",
    ),
    "limits": (
        "/tenant/people",
        {
            "details:has(form[action$=limits]) > summary": "\n",
            "details[open] [name=max_amount]": "75", "details[open] [name=reason]": "Small refunds only",
        },
        "Set the limits", "up to 75",
    ),
    "webhook": (
        "/tenant/webhooks",
        {"#id_name": "books", "#id_url": "https://203.0.114.7/hook", "#id_events_1": " "},
        "Add the webhook", "https://203.0.114.7/hook",
    ),
    "log": (
        "/tenant/webhooks",
        {
            "[aria-labelledby=keep] summary": "\n", "[aria-labelledby=keep] [name=days]": "9",
            "[aria-labelledby=keep] [name=reason]": "Little room",
        },
        "Keep it so long", "Little room",
    ),
    "price": (
        "/budgets/prices",
        {
            "#id_price-provider": "openai", "#id_price-model": "house-model", "#id_price-kind": "the worst",
            "#id_price-input_usd_per_mtok": "2.5", "#id_price-output_usd_per_mtok": "10",
            "#id_price-request_usd": "0", "#id_price-reason": "Our contract",
        },
        "State the price", "house-model",
    ),
    "ceilings": (
        "/budgets",
        {"#id_daily_usd": "40", "#id_reason": "A quiet month"},
        "Set the ceilings", "$40",
    ),
    "rates": (
        "/budgets",
        {"#id_rates-submissions_per_minute": "30", "#id_rates-reason": "A quiet month"},
        "Set the limits", "30",
    ),
    "tool without code": (
        "/http-tools",
        {
            "#id_name": "crm.find_person", "#id_description": "Finds a person.", "#id_method": "GET",
            "#id_url": "https://203.0.114.7/v1/people",
            "#id_risk": "read only", "#id_reversibility": "it changes nothing",
            "#id_reason": "Support asks for it",
        },
        "Publish the tool", "crm.find_person",
    ),
    "tool server": (
        "/tool-servers",
        {
            "#server_form_slug": "books", "#server_form_address": "https://203.0.114.7/mcp",
            "#server_form_reason": "The library's",
        },
        "Add the server", "https://203.0.114.7/mcp",
    ),
    "private place": (
        "/tool-servers",
        {
            "[aria-labelledby=private] summary": "\n", "[name=places]": "crm.internal:8443",
            "[aria-labelledby=private] [name=reason]": "Ours",
        },
        "Make version", "crm.internal:8443",
    ),
    "secret": (
        "/tool-servers",
        {
            "[aria-labelledby=secrets] summary": "\n", "[aria-labelledby=secrets] [name=name]": "crm",
            "[name=origin]": "https://203.0.114.7", "[name=value]": "s3cret-of-the-crm",
            "[aria-labelledby=secrets] [name=reason]": "For the tool",
        },
        "Keep the secret", "https://203.0.114.7",
    ),
    "stop": ("/system", {"#id_reason": "A drill"}, "Put the stop in force", "A drill"),
    "model": (
        "/models",
        {
            "#change ~ details > summary": "\n", "#id_name": "main", "#id_model": "house-7b",
            "#id_roles input[value=executor]": " ", "#id_reason": "Ours",
        },
        "Make version 1", "house-7b",
    ),
    "document": (
        "/corpora",
        {"#id_corpus": "policy", "#id_name": "a", "#id_title": "A", "#id_text": "Words."},
        "Put the document", "policy",
    ),
    "rule": (
        "/policy/rule",
        {
            "#id_name": "no-sends", "#id_place": "1", "#id_decision": "refuses",
            "#id_reason": "Nothing is sent today", "#id_tools": "mail.*", "#id_why": "A drill",
        },
        "Make it so", "no-sends",
    ),
    "undo": (
        "/policy/undo",
        {"#id_seconds": "5 seconds", "#id_reason": "Hasty hands"},
        "Make version 1", "Hasty hands",
    ),
    "task": (
        "/new/tool-loop", {"[name=objective]": "How much is 1 + 1?"}, "Submit the task", "How much is 1 + 1?",
    ),
}  # fmt: skip

# One of each make: plain, in a fold, in a row of a table, of several forms on a page, of a schema.
OFTEN = ("key", "limits", "price", "private place", "task")


@pytest.fixture
def world(house: House) -> World:
    """A furnished house."""
    return make_world(house)


@proves("R-UI-11", part="forms are filled and sent by keys alone")
@pytest.mark.parametrize(
    "form", [form if form in OFTEN else pytest.param(form, marks=pytest.mark.slow) for form in FORMS]
)
def test_a_form_is_filled_and_sent_by_keys_alone(page_as: PageAs, world: World, form: str) -> None:
    path, typed, button, said = FORMS[form]
    page = page_as("admin")
    page.goto(path)
    for selector, text in typed.items():
        to(page, f"main {selector}")
        page.keyboard.type(text)
    to(page, "main form button.primary, main form button.danger")
    expect(page.locator(":focus")).to_contain_text(button)
    page.keyboard.press("Enter")
    expect(page.locator("main").get_by_text(said).first).to_be_visible()
    expect(page.locator("main [data-errors]")).to_have_count(0)
