"""The forms of the console as they are filled and sent by keys alone, and those that are filled elsewhere
(R-UI-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.browser import furnish
from tests.doors.pages.test_every_page import belongings
from tests.factories.world import World


class Form(NamedTuple):
    """A form by the template it is written in and the page it stands on, which may name one of the things of
    `belongings`: what is typed at each place the Tab key comes to ("\n" is Enter, " " is Space), which button
    sends it, and what the page says then. `mark`: what only this form of its template has, where that is not
    the button's words. `before` makes what it is about."""

    template: str
    page: str
    typed: Mapping[str, str]
    button: str
    said: str
    mark: str = ""
    before: Callable[[World], object] | None = None


FORMS: dict[str, Form] = {
    "tenant session": Form(
        "tenancy/sign_ins.html", "/tenant/sign-ins",
        {"td details:has([action$=end]) > summary": "\n", "td details[open] [name=reason]": "A lost laptop"},
        "End the session", "is ended in this tenant.", mark="tenant-session-end",
        before=furnish.a_tenant_session,
    ),
    "sign-in rules": Form(
        "tenancy/sign_in_rules.html", "/tenant/sign-in-rules",
        {"#id_minutes": "25", "#id_reason": "Long lunches"},
        "Set the rules", "The rules hold from everybody",
    ),
    "limited person": Form(
        "tenancy/sign_ins.html", "/tenant/sign-ins",
        {
            "[aria-labelledby=limited] details > summary": "\n",
            "[aria-labelledby=limited] [name=reason]": "It was them",
        },
        "Let them try again", "may try to sign in again at once.", mark="sign-in-lift",
        before=furnish.a_limited_person,
    ),
    "key": Form(
        "tenancy/keys.html", "/tenant/keys", {"#id_label": "nightly"}, "Make the key", "shown this once"),
    "rotated key": Form(
        "tenancy/keys.html", "/tenant/keys", {"details:has([action$=rotate]) > summary": "\n"},
        "Rotate", "shown this once", mark="Rotate", before=lambda world: world.people.client_key,
    ),
    "person": Form(
        "tenancy/people.html", "/tenant/people",
        {
            "#id_email": "new@people.example", "#id_name": "Newly Come", "#id_role": "reviewer",
            "form[action$=invite] summary": "\n", "#id_max_amount": "50",
        },
        "Add the person", "sets a password by this link",
    ),
    "confirmed": Form(
        "tenancy/people.html", "/tenant/people",
        {
            "details:has(form[action$=confirm]) > summary": "\n",
            "details[open] [name=reason]": "I asked them in person",
        },
        "Confirm the person", "The person is confirmed", before=furnish.a_seen_link,
    ),
    "deactivated": Form(
        "tenancy/people.html", "/tenant/people",
        {
            "details:has(form[action$=deactivate]) > summary": "\n",
            "details[open] [name=reason]": "Left us",
        },
        "Deactivate", "has no role here any more", mark="people-deactivate",
    ),
    "limits": Form(
        "tenancy/people.html", "/tenant/people",
        {
            "details:has(form[action$=limits]) > summary": "\n",
            "details[open] [name=max_amount]": "75", "details[open] [name=reason]": "Small refunds only",
        },
        "Set the limits", "up to 75",
    ),
    "queue": Form(
        "tenancy/queues.html", "/tenant/queues",
        {"#id_name": "claims", "#id_description": "Claims of customers", "#id_reason": "New team"},
        "Add the queue", "The queue claims is there",
    ),
    "queue described": Form(
        "tenancy/queues.html", "/tenant/queues",
        {
            "details:has([value=describe]) > summary": "\n",
            "details[open] [name=description]": "Ours", "details[open] [name=reason]": "Said better",
        },
        "Set what it is for", "is for is set",
    ),
    "queue closed": Form(
        "tenancy/queues.html", "/tenant/queues",
        {"details:has([value=close]) > summary": "\n", "details[open] [name=reason]": "Unused"},
        "Close the queue", "is closed", before=furnish.an_unused_queue,
    ),
    "queue reopened": Form(
        "tenancy/queues.html", "/tenant/queues",
        {"details:has([value=reopen]) > summary": "\n", "details[open] [name=reason]": "Needed"},
        "Open the queue again", "is open again", before=furnish.a_closed_queue,
    ),
    "webhook": Form(
        "webhooks/list.html", "/tenant/webhooks",
        {"#id_name": "books", "#id_url": "https://203.0.114.7/hook", "#id_events_1": " "},
        "Add the webhook", "https://203.0.114.7/hook",
    ),
    "log": Form(
        "webhooks/list.html", "/tenant/webhooks",
        {
            "[aria-labelledby=keep] summary": "\n", "[aria-labelledby=keep] [name=days]": "9",
            "[aria-labelledby=keep] [name=reason]": "Little room",
        },
        "Keep it so long", "Little room",
    ),
    "price": Form(
        "budgets/prices.html", "/budgets/prices",
        {
            "#id_price-provider": "openai", "#id_price-model": "house-model", "#id_price-kind": "the worst",
            "#id_price-input_usd_per_mtok": "2.5", "#id_price-output_usd_per_mtok": "10",
            "#id_price-request_usd": "0", "#id_price-reason": "Our contract",
        },
        "State the price", "house-model",
    ),
    "ceilings": Form(
        "budgets/budgets.html", "/budgets",
        {"#id_daily_usd": "40", "#id_reason": "A quiet month"},
        "Set the ceilings", "$40",
    ),
    "rates": Form(
        "budgets/budgets.html", "/budgets",
        {"#id_rates-submissions_per_minute": "30", "#id_rates-reason": "A quiet month"},
        "Set the limits", "A quiet month",
    ),
    "tool without code": Form(
        "tools/http_tools.html", "/http-tools",
        {
            "#id_name": "crm.find_person", "#id_description": "Finds a person.", "#id_method": "GET",
            "#id_url": "https://203.0.114.7/v1/people",
            "#id_risk": "read only", "#id_reversibility": "it changes nothing",
            "#id_reason": "Support asks for it",
        },
        "Publish the tool", "crm.find_person may be called, as version 1.",
    ),
    "tool server": Form(
        "tools/servers.html", "/mcp-servers",
        {
            "#server_form_slug": "books", "#server_form_address": "https://203.0.114.7/mcp",
            "#server_form_reason": "The library's",
        },
        "Add the server", "https://203.0.114.7/mcp",
    ),
    "private place": Form(
        "tools/servers.html", "/mcp-servers",
        {
            "[aria-labelledby=private] summary": "\n", "[name=places]": "crm.internal:8443",
            "[aria-labelledby=private] [name=reason]": "Ours",
        },
        "Make version", "crm.internal:8443",
        mark="places.version",
    ),
    "secret": Form(
        "tools/servers.html", "/mcp-servers",
        {
            "[aria-labelledby=secrets] summary": "\n", "[aria-labelledby=secrets] [name=name]": "crm",
            "[name=origin]": "https://203.0.114.7", "[name=value]": "s3cret-of-the-crm",
            "[aria-labelledby=secrets] [name=reason]": "For the tool",
        },
        "Keep the secret", "https://203.0.114.7",
    ),
    "stop": Form(
        "tools/system.html", "/system", {"#id_what": "Workflow tool-loop", "#id_reason": "A drill"},
        "Stop it…", "Stop Workflow tool-loop?",
    ),
    "model": Form(
        "tools/models.html", "/models",
        {
            "#change ~ details > summary": "\n", "#id_name": "main", "#id_model": "house-7b",
            "#id_secret": "openai", "#id_roles input[value=executor]": " ", "#id_reason": "Ours",
        },
        "Make version 1", "house-7b",
        mark='value="keep"', before=furnish.a_models_key,
    ),
    "document": Form(
        "tools/corpora.html", "/corpora",
        {"#id_corpus": "policy", "#id_name": "a", "#id_title": "A", "#id_text": "Words."},
        "Put the document", "policy",
    ),
    "rule": Form(
        "policy/rule.html", "/policy/rule",
        {
            "#id_name": "no-sends", "#id_place": "1", "#id_decision": "refuses",
            "#id_reason": "Nothing is sent today", "#id_tools": "mail.*", "#id_why": "A drill",
        },
        "Make it so", "no-sends",
    ),
    "undo": Form(
        "approvals/undo_window.html", "/policy/undo",
        {"#id_seconds": "5 seconds", "#id_reason": "Hasty hands"},
        "Make version 1", "Hasty hands",
        mark="now.version|add:1",
    ),
    "task": Form(
        "orchestrator/submit.html", "/new/tool-loop", {"[name=objective]": "How much is 1 + 1?"},
        "Submit the task", "How much is 1 + 1?",
    ),
    "what tools read on the web": Form(
        "tools/destinations.html", "/destinations",
        {
            "[aria-labelledby=web] > details > summary": "\n",
            "[aria-labelledby=web] [name$=allow]": "https://203.0.114.7/*",
            "[aria-labelledby=web] [name$=reason]": "Support reads it",
        },
        "Make version 1", "It holds from the next call on.", mark='value="web"',
    ),
    "database": Form(
        "tools/destinations.html", "/destinations",
        {
            "[aria-labelledby=databases] > details > summary": "\n",
            "[aria-labelledby=databases] [name$=name]": "books",
            "[aria-labelledby=databases] [name$=host]": "203.0.114.7",
            "[aria-labelledby=databases] [name$=database]": "books",
            "[aria-labelledby=databases] [name$=reader]": "books-reader",
            "[aria-labelledby=databases] [name$=reason]": "Support asks it",
        },
        "Make version 1", "It holds from the next call on.", mark='value="databases"',
        before=furnish.a_password,
    ),
    "no database": Form(
        "tools/destinations.html", "/destinations",
        {"td details summary": "\n", "td [name=reason]": "It moved"},
        "Take out books", "No tool asks books any more.", mark='value="forget"', before=furnish.a_database,
    ),
    "letters": Form(
        "tools/destinations.html", "/destinations",
        {
            "[aria-labelledby=mail] > details > summary": "\n",
            "[aria-labelledby=mail] [name$=sender]": "desk@shop.example",
            "[aria-labelledby=mail] [name$=reason]": "Ours",
        },
        "Make version 1", "It holds from the next call on.", mark='value="mail"',
    ),
    "tool": Form(
        "tools/tool.html", "/tools/calculator.evaluate",
        {"#id_price_usd": "0.25", "#id_reason": "It costs"},
        "Make version 2", "is at version 2 now", mark="spec.version|add:1",
    ),
    "tool off": Form(
        "tools/tool.html", "/tools/calculator.evaluate", {"#why": "A drill"},
        "Disable calculator.evaluate", "takes no further call.", mark='name="enabled"',
    ),
    "tool that drifted": Form(
        "tools/tool.html", "/tools/calculator.evaluate", {"#cleared": "It is well"},
        "Take the mark off", "The mark on calculator.evaluate is off.", before=furnish.a_drifted_tool,
    ),
    "circuit": Form(
        "tools/circuit.html", "/system/circuits/<uuid:circuit_id>", {"#reason": "They repaired it"},
        "Close the circuit", "Closed",
    ),
    "test of a webhook": Form(
        "webhooks/one.html", "/tenant/webhooks/<uuid:webhook_id>", {}, "Send a test", "It was",
    ),
    "secret of a webhook": Form(
        "webhooks/one.html", "/tenant/webhooks/<uuid:webhook_id>",
        {"details:has([value=rotate]) > summary": "\n"},
        "Make a new secret", "shown this once",
    ),
    "no webhook": Form(
        "webhooks/one.html", "/tenant/webhooks/<uuid:webhook_id>",
        {"details:has([value=remove]) > summary": "\n"},
        "Remove", "was removed; nothing is sent to it any more.", mark='value="remove"',
    ),
    "delivery": Form(
        "webhooks/one.html", "/tenant/webhooks/<uuid:webhook_id>",
        {"[aria-labelledby=log] > details > summary": "\n"}, "Send it again", "It was",
    ),
    "no document": Form(
        "tools/document.html", "/corpora/<str:corpus>/<str:document>", {"#why": "It is wrong"},
        "Take it out", "is found by no search any more",
    ),
    "tool of a server": Form(
        "tools/server.html", "/mcp-servers/<str:server>",
        {
            "#tool-1 details:has([value=admit]) > summary": "\n", "[name=risk]": "read only",
            "[name=reversibility]": "it changes nothing", "[name=recovery]": "read",
            "#tool-1 [name=reason]": "Looked at",
        },
        "Admit", "may be called, as version 1", mark='value="admit"',
    ),
    "no server": Form(
        "tools/server.html", "/mcp-servers/<str:server>", {"#why": "It is gone"},
        "Remove theirs_alone", "theirs_alone was removed.", mark='value="remove"',
    ),
    "no model": Form(
        "tools/models.html", "/models", {"td details summary": "\n", "td [name=reason]": "It is slow"},
        "Take out theirs-alone", "No new run asks theirs-alone.", mark='value="forget"', before=belongings,
    ),
    "no secret": Form(
        "tools/servers.html", "/mcp-servers",
        {
            "[aria-labelledby=secrets] td details summary": "\n",
            "[aria-labelledby=secrets] td [name=reason]": "It leaked",
        },
        "Revoke theirs-alone", "is sent nowhere any more", mark="Revoke {%", before=belongings,
    ),
    "no stop": Form(
        "tools/system.html", "/system",
        {".notice-error details summary": "\n", ".notice-error [name=reason]": "The drill is over"},
        "Lift this stop", "The stop is lifted.", before=furnish.a_stop,
    ),
    "security review": Form(
        "tools/system.html", "/system",
        {".notice-error details summary": "\n", ".notice-error [name=finding]": "A test"},
        "Write the review down", "The review is written down.", before=furnish.an_unsafe_run,
    ),
    "no role": Form(
        "tenancy/people.html", "/tenant/people",
        {"li details:has([action$=remove]) > summary": "\n", "details[open] [name=reason]": "Left us"},
        "Remove the role", "has lost the role.", mark="Remove the role",
    ),
    "view": Form(
        "orchestrator/saved_views.html", "/runs/views?status=failed", {"#name": "Of last week"},
        "Keep the view", "The view is kept.",
    ),
    "name of a view": Form(
        "orchestrator/saved_views.html", "/runs/views",
        {"td details summary": "\n", "td [name=name]": "Another"},
        "Rename", "The view is renamed.", before=belongings,
    ),
    "wish": Form(
        "orchestrator/run_action.html", "/runs/<uuid:run_id>/actions?wish=cancel", {"#reason": "Not needed"},
        "Cancel run", "Cancel asked for", mark="{{ wish.word }} run",
    ),
    "wish for several": Form(
        "orchestrator/bulk.html", "/runs",
        {"[data-pick]": " ", "#bulk [value=cancel]": "\n", "[name=reason]": "Not needed"},
        "Cancel 1 run", "Cancel asked for", mark="{{ wish.word }} {{ fit", before=furnish.a_run,
    ),
    "additions": Form(
        "policy/policy.html", "/policy", {"#additions-then": "it is denied", "#why-additions": "A drill"},
        "Set it", "The policy is at version", mark="why-additions",
    ),
    "detector": Form(
        "policy/policy.html", "/policy", {"#severity": "fail", "#why-safety": "A drill"},
        "Set it", "The policy is at version", mark="why-safety",
    ),
    "weaker policy": Form(
        "policy/policy.html", "/policy", {"#why-waiting": "Not this one"},
        "Refuse it", "It waits no longer; the policy is as it was.", mark="why-waiting", before=belongings,
    ),
    "boundary": Form(
        "boundaries/publish.html", "/boundaries/_publish", {"#id_reason": "Once more"},
        "Publish", "my-tools version 1 is published", mark='name="publish"',
    ),
    "tool of a boundary": Form(
        "boundaries/boundary.html", "/boundaries/tool-loop-default",
        {"#id_tool": "files.*", "#id_risk_ceiling": "read only", "#id_reason": "It reads reports"},
        "Allow the tool", "tool-loop-default version 2 is published",
    ),
    "no version of a boundary": Form(
        "boundaries/boundary.html", "/boundaries/tool-loop-default",
        {"td details summary": "\n", "td [name=reason]": "It is old"},
        "Retire version 1", "is retired. Its runs go on.", mark="Retire version",
    ),
    "workflow": Form(
        "workflows/publish.html", "/workflows/_publish?from=tool-loop", {"#id_reason": "Once more"},
        "Publish", "tool-loop version", mark='name="publish"',
    ),
    "no version": Form(
        "workflows/workflow.html", "/workflows/tool-loop",
        {"td details summary": "\n", "td [name=reason]": "It is old"},
        "Retire version 1", "is retired. Its runs go on.", mark="Retire version",
    ),
}  # fmt: skip
