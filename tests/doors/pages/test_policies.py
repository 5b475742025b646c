"""The pages of the policy by origin, and where its findings show (R-TOOL-17, M15)."""

from typing import Any

from django.test import Client

from orchestrator.core.policy.rules import SHIPPED
from orchestrator.policies.actions.policy_versions import ChangeAuthor, change_policy
from orchestrator.policies.queries.policies import find_open_proposal, policy_now
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.browsers import words
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import at, refund
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

PAGE, RULE = "/policy", "/policy/rule"


def given(admin: Client, button: str = "change", of: str = "", **typed: Any) -> Any:
    """The form of one rule, with some fields typed over, sent."""
    return form_with(admin.get(f"{RULE}?name={of}"), button).send(admin, button, **typed)


def rules(world: World) -> list[str]:
    """The names of the rules in force."""
    with tenant_transaction(world.id):
        return [rule.name for rule in policy_now().policy.rules]


@proves("R-UI-5", part="policy editor with a reason and a difference")
@proves("R-TOOL-17", part="page: a stricter rule holds at once")
def test_a_stricter_rule_is_looked_at_and_then_made(admin: Client, world: World) -> None:
    typed = {
        "name": "no-ledger",
        "decision": "deny",
        "reason": "Not here.",
        "tools": "ledger.*",
        "why": "Audit",
    }
    looked = given(admin, "preview", **typed)
    assert "nothing is changed yet" in words(looked)
    assert "It is weaker nowhere" in words(looked)
    assert rules(world) == [rule.name for rule in SHIPPED.rules]
    made = given(admin, **typed)
    assert (made.status_code, made["Location"]) == (302, PAGE)
    assert rules(world)[0] == "no-ledger"
    shown = words(admin.get(PAGE))
    assert "Version 1 is in force" in shown
    assert "Any argument of ledger.* (changes): deny it." in shown


@proves("R-TOOL-17", part="page: a second person for less")
def test_a_rule_that_is_taken_out_waits_for_another_administrator(admin: Client, world: World) -> None:
    looked = given(admin, "preview", of="strange-recipient", decision="allow", why="Too strict")
    assert "deny it so far, let it pass then." in words(looked)
    assert given(admin, "remove", of="strange-recipient", why="Too strict").status_code == 302
    assert "You proposed it" in words(admin.get(PAGE))
    own = form_with(admin.get(PAGE), "drop")
    assert "strange-recipient" in rules(world)
    own.buttons.append(("agree", "agree"))
    assert own.send(admin, "agree", reason="Yes").status_code == 403
    second = at(make_somebody(world.house.tenant, Role.ADMIN))
    assert form_with(second.get(PAGE), "agree").send(second, "agree", reason="Yes").status_code == 302
    assert "strange-recipient" not in rules(world)


def test_a_proposal_is_refused_with_a_reason(admin: Client, world: World) -> None:
    who = ChangeAuthor(principal=fresh_id(), owner=fresh_id())
    change_policy(world.id, SHIPPED.evolve(rules=()), expected=None, who=who, reason="All of it")
    form = form_with(admin.get(PAGE), "drop")
    assert form.send(admin, "drop", reason="").status_code == 422
    assert form.send(admin, "drop", reason="No").status_code == 302
    with tenant_transaction(world.id):
        assert find_open_proposal() is None


def test_what_is_done_with_additions_is_set_with_a_reason(admin: Client, world: World) -> None:
    sent = admin.post(PAGE, {"after_untrusted": "deny", "reason": "Stricter"})
    assert sent.status_code == 302
    with tenant_transaction(world.id):
        assert policy_now().policy.after_untrusted == "deny"


def test_what_is_no_rule_is_said_beside_it(admin: Client, world: World) -> None:
    answer = given(admin, name="a", decision="deny", reason="x", why="y", tools="../x")
    assert answer.status_code == 422
    assert "is no name of a tool" in words(answer)


def test_who_is_no_administrator_reads_and_changes_nothing(world: World) -> None:
    reader = at(world.people.submitter)
    assert "Changing the policy needs the role admin" in words(reader.get(PAGE))
    assert reader.post(PAGE, {"after_untrusted": "allow", "reason": "x"}).status_code == 403
    assert reader.get(RULE).status_code == 403


def test_a_tools_page_names_the_rules_that_reach_it(admin: Client) -> None:
    page = words(admin.get("/tools/mail.send"))
    assert "Sensitive: /to" in page
    assert "strange-recipient" in page


@proves("R-TOOL-17", part="the scope of a task on its pages")
def test_the_scope_is_shown_before_and_after_submission(
    admin: Client, world: World, company: Company
) -> None:
    form = form_with(admin.get("/new/tool-loop"), "1")
    form.action = "/new/tool-loop"
    looked = form.send(admin, "1", objective="Write to ada@example.org about order A-1001")
    assert "Allowed targets of changes" in words(looked)
    assert "ada@example.org" in words(looked)
    run = refund(world, company, objective="Refund order A-1001")
    assert "a-1001" in words(admin.get(f"/runs/{run}"))


@proves("M15", part="run page")
def test_an_answer_that_rests_on_untrusted_content_says_so(
    admin: Client, world: World, company: Company
) -> None:
    run = refund(world, company, whole=True)
    page = words(admin.get(f"/runs/{run}"))
    assert "Based on content that was not verified" in page
    assert "never as an instruction" in page
