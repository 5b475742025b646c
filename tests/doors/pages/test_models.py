"""The page of models, and circuits where the tools and models are shown (R-TOOL-22, R-UI-5, R-BUDGET-13)."""

from django.test import Client

from orchestrator.llm.actions.tenant_models import set_models
from orchestrator.llm.queries import profiles_now
from orchestrator.outbound.actions import TenantCircuits
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.queries.destinations import own_models
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import keep_secret, revoke_secret
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

MODELS = "/models"
GIVEN = {"name": "main", "provider": "openai", "model": "gpt-5.4", "roles": "executor", "reason": "Ours"}


@proves("R-TOOL-22", part="model profiles on their page")
def test_an_admin_names_changes_and_takes_out_a_model(admin: Client, world: World) -> None:
    assert "No model is named" in text(admin.get(MODELS))
    keep_secret(world.id, "openai", "sk-0123456789", origin="https://api.openai.com", by=None)
    sent = form_with(admin.get(MODELS), "keep").send(
        admin, "keep", **GIVEN, secret="openai", failover="house", max_output_tokens="900"
    )  # fmt: skip
    assert sent["Location"] == MODELS
    page = text(admin.get(MODELS))
    for words in ("gpt-5.4", "https://api.openai.com/v1", "executor", "openai", "900", "listed", "Closed"):
        assert words in page
    assert "sk-0123456789" not in page
    form = form_with(admin.get(f"{MODELS}?change=main"), "keep")
    assert (form.fields["model"], form.fields["failover"]) == ("gpt-5.4", "house")
    form.send(admin, "keep", roles="executor", max_retries="4", reason="Flaky")
    with tenant_transaction(world.id):
        now = own_models().find_model("main")
    assert now is not None
    assert (now.max_retries, now.max_output_tokens, now.secret) == (4, 900, "openai")
    form_with(admin.get(MODELS), "forget").send(admin, "forget", reason="Enough")
    page = text(admin.get(MODELS))
    assert "No model is named" in page
    assert "Version 3" in page


def test_what_is_wrong_stands_beside_its_field_and_nothing_typed_is_lost(admin: Client, world: World) -> None:
    form = form_with(admin.get(MODELS), "keep")
    for wrong, words in (
        ({"base_url": "http://10.0.0.1/v1"}, "10.0.0.1"),
        ({"secret": "none"}, "there is none of this name"),
        ({"failover": "house, other"}, "There is no other model other."),
        ({"roles": None}, "Somebody has to play a role."),
        ({"name": "Main"}, "Main"),
    ):
        typed = {name: value for name, value in {**GIVEN, **wrong}.items() if value is not None}
        refused = form.send(admin, "keep", **typed)
        assert refused.status_code == 422, wrong
        assert words in text(refused)
        assert form_with(refused, "keep").fields["reason"] == "Ours"
    with tenant_transaction(world.id):
        assert own_models().profiles == ()
    assert admin.get(f"{MODELS}?change=other").status_code == 404


@proves("R-TOOL-4", part="a new model address on its page")
def test_a_new_address_waits_for_a_second_administrator(admin: Client, world: World) -> None:
    second = at(make_somebody(world.house.tenant, Role.ADMIN))
    keep_secret(world.id, "openai", "sk-0123456789", origin="https://api.openai.com", by=None)
    sent = form_with(admin.get(MODELS), "keep").send(admin, "keep", **GIVEN, secret="openai")
    assert sent["Location"] == "/change-requests"
    assert "Prompts go to main: gpt-5.4 at https://api.openai.com/v1." in text(second.get("/change-requests"))
    form_with(second.get("/change-requests"), "agree").send(second, "agree", reason="Seen it")
    assert "gpt-5.4" in text(admin.get(MODELS))


@proves("R-BUDGET-15", part="a model that one runs oneself, on its page")
def test_a_model_of_ones_own_is_named_with_its_price_and_its_bound(admin: Client, world: World) -> None:
    set_places(world.id, ("127.0.0.1:11434",), expected=None, by=None, reason="Ours.")
    local = {**GIVEN, "model": "llama", "base_url": "http://127.0.0.1:11434/v1"}
    form = form_with(admin.get(MODELS), "keep")
    refused = form.send(admin, "keep", **local)
    assert (refused.status_code, "Nobody knows what llama costs there" in text(refused)) == (422, True)
    half = form.send(admin, "keep", **local, price="rates", price_in="1")
    assert (half.status_code, "in and out" in text(half)) == (422, True)
    assert form.send(admin, "keep", **local, price="own").status_code == 302
    with tenant_transaction(world.id):
        (mine,) = profiles_now(None, database_now())
        assert mine.at_once == 1
    assert "stated here: $0" in text(admin.get(MODELS))
    form = form_with(admin.get(f"{MODELS}?change=main"), "keep")
    assert form.send(admin, "keep", roles="executor", at_once="3", reason="More").status_code == 302
    with tenant_transaction(world.id):
        (mine,) = profiles_now(None, database_now())
        assert mine.at_once == 3


@proves("R-TOOL-22", part="a key that is gone is shown")
def test_a_missing_key_an_unknown_price_and_an_open_circuit_are_shown(admin: Client, world: World) -> None:
    keep_secret(world.id, "openai", "sk-0123456789", origin="https://api.openai.com", by=None)
    given = {
        "name": "main",
        "provider": "openai",
        "model": "house-7b",
        "secret": "openai",
        "roles": ["executor"],
    }
    set_models(world.id, (given,), expected=None, by=None, reason="Ours.")
    TenantCircuits(world.id).trip("use", "main: openai", "overrun")
    page = text(admin.get(MODELS))
    assert "Worst case" in page
    assert "Open" in page
    revoke_secret(world.id, "openai", by=None)
    assert "Missing" in text(admin.get(MODELS))


@proves("R-UI-5", part="breaker state of a tool")
def test_a_tools_circuit_stands_in_the_list_and_on_its_page(admin: Client, world: World) -> None:
    assert "Circuit open" not in text(admin.get("/tools"))
    assert "it never failed" in text(admin.get("/tools/orders.lookup"))
    TenantCircuits(world.id).trip("tool", "orders.lookup", "timeout")
    listed, one = text(admin.get("/tools")), text(admin.get("/tools/orders.lookup"))
    assert listed.count("Circuit open") == 1
    assert "timeout" in listed
    assert "Open" in one
    assert "the last timeout" in one
