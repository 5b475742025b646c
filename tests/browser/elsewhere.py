"""The forms of the console that are not filled by `tests.browser.forms`, and the tests that fill them."""

ACCOUNT = (
    "allauth's fields under labels and one button, without a script of ours: test_sign_in, test_account_pages"
)
CARD = "decided, answered, edited and handed on by keys in test_inbox and test_card"
# What else asks for something, by its template and what only it has there (nothing: every form of it), and
# where it is filled.
PLATFORM = "filled by keys alone in test_platform"
ELSEWHERE: dict[tuple[str, str], str] = {
    ("account/second_factor.html", ""): "the code is typed and sent by keys in test_second_factor",
    ("account/login.html", "Sign in"): ACCOUNT,
    ("account/password_reset_from_key.html", "Set the password"): ACCOUNT,
    ("allauth/elements/form.html", "attrs.method"): ACCOUNT,
    ("approvals/_actions.html", ""): CARD,
    ("approvals/_extend.html", ""): CARD,
    ("approvals/_handle.html", ""): CARD,
    ("orchestrator/retry.html", "Retry from there"): "chosen and sent by keys in test_retrying",
    ("orchestrator/effects.html", "It happened"): "said by keys in test_doubts",
    ("approvals/bulk.html", ""): "several are decided at once by keys in test_inbox",
    ("budgets/prices.html", "Look at the effect first"): "asks for a price and a time like the form above it",
    (
        "pages/preferences.html",
        "Save",
    ): "selects and one button, chosen in test_shell; says nothing when it is kept",
    ("platform/tenants.html", ""): PLATFORM,
    ("platform/tenant.html", "platform-tenant"): PLATFORM,
    ("platform/tenant.html", "platform-administrator"): PLATFORM,
    ("platform/tenant.html", "platform-resume"): PLATFORM,
    ("platform/suspend.html", ""): PLATFORM,
    ("reviews/one.html", "Answer"): "test_deciding_by_keys",
    ("tools/change_requests.html", ""): "test_deciding_by_keys",
    ("tools/system.html", 'value="sure"'): "one button that asks once more; nothing is filled in",
    ("tools/server.html", "Back into quarantine"): "one reason and one button, like the removal below it",
}
