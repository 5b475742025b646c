"""A tenant's own model plays its runs, with a key of its own that is sealed and goes nowhere else."""

from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from budgets.core.dimension import Dimension
from budgets.models import Price
from budgets.queries import get_usage_lines
from orchestrator.core.common.goal import Mode
from orchestrator.llm.actions.tenant_models import set_models
from orchestrator.publishing.models import PinSet
from orchestrator.runs.models.run import ManifestRow
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.core.errors import InvalidInput
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import keep_secret, revoke_secret
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import Call, OpenAIServer, calls, failing, said
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, company_at, make_world
from tests.proves import proves
from traces.models import Event, Payload

KEY = "sk-own-0123456789abcdefghij"
LOOK = Call("orders_lookup", {"order_id": "A-1001"}, "call_a")
FREE = {"input_usd_per_mtok": "0", "output_usd_per_mtok": "0"}
GOAL = "Where is order A-1001?"


class Own(OpenAIServer):
    """The tenant's own server, which wants the key; `then` is done after its first answer."""

    then: Callable[[], None] | None = None

    def answer(self, seen: Seen) -> Reply:
        """As the script says."""
        told, then, self.then = super().answer(seen), self.then, None
        if then is not None:
            then()
            connection.close()
        return told


@pytest.fixture
def own() -> Iterator[Own]:
    """A running server."""
    with Own(key=KEY) as server:
        yield server


@pytest.fixture
def house_model(settings: Settings) -> Iterator[OpenAIServer]:
    """The operator's."""
    with foreign(settings, OpenAIServer()) as server:
        yield server


@pytest.fixture
def world(house: House, company: Company, own: Own) -> Iterator[World]:
    """A furnished house that may reach its own server, and keeps its key."""
    with company_at(company.url):
        found = make_world(house)
        set_places(found.id, (own.origin.removeprefix("http://"),), expected=None, by=None, reason="Ours.")
        keep_secret(found.id, "own-model", KEY, origin=own.origin, by=None)
        yield found


def name(world: World, server: OpenAIServer, **more: object) -> None:
    """The tenant's model stands at this server."""
    given = {
        "name": "main", "provider": "openai", "model": "large", "base_url": server.url, "roles": ["executor"],
        "secret": "own-model", "timeout_ms": 20_000, "price": FREE, **more,
    }  # fmt: skip
    set_models(world.id, (given,), expected=None, by=None, reason="Ours.")


def taken_over(world: World, run: UUID) -> list[tuple[str, str]]:
    """From whom, why."""
    return [(one["profile"], one["reason"]) for one in world.said(run, "model_failed_over")]


@proves("R-TOOL-22", part="keys from encrypted secrets")
@proves("M16", part="a model's own key")
def test_the_tenants_model_plays_with_its_sealed_key_which_is_nowhere_to_be_read(
    world: World, own: Own
) -> None:
    name(world, own)
    own.play(calls(LOOK, text=f"I was asked with {KEY}."), said("Delivered."))
    found = onwards(world, world.submit("tool-loop", GOAL))
    assert (found.terminal_code, found.scripted) == ("SUCCESS", False)
    assert [seen.headers["authorization"] for seen in own.seen] == [f"Bearer {KEY}"] * 2
    assert own.violations == []
    # It repeated the key: neither the next prompt nor anything that is kept has it.
    assert KEY not in str(own.documents)
    with tenant_transaction(world.id):
        kept = [bytes(body or b"") for body in Payload.objects.values_list("body", flat=True)]
        kept += [bytes(body) for body in Event.objects.values_list("body", flat=True)]
        kept += [bytes(body) for body in ManifestRow.objects.values_list("body", flat=True)]
        kept += [bytes(body) for body in PinSet.objects.values_list("body", flat=True)]
    assert any(b"I was asked with [secret]" in body for body in kept)
    assert not any(KEY.encode() in body for body in kept)
    world.sound(found.id)


@proves("R-TOOL-22", part="a revoked key, and the operator's models after one's own")
def test_a_revoked_key_is_used_no_more_and_the_operators_model_takes_over(
    world: World, own: Own, house_model: OpenAIServer
) -> None:
    name(world, own, failover=["house"])
    own.play(calls(LOOK))
    house_model.play(said("Delivered."))
    run = world.submit("tool-loop", GOAL)
    own.then = lambda: revoke_secret(world.id, "own-model", by=None)
    found = onwards(world, run)
    assert found.terminal_code == "SUCCESS"
    assert taken_over(world, found.id) == [("main", "no_key")]
    assert (len(own.seen), len(house_model.seen)) == (1, 1)
    # Its key went to its own address alone.
    assert KEY not in str([seen.headers for seen in house_model.seen])


@proves("W3", part="model addresses, at save")
def test_a_private_address_that_is_not_listed_and_a_secret_of_another_place_are_refused(
    world: World, own: Own
) -> None:
    for at in (
        "http://127.0.0.1:9/v1",
        "http://169.254.169.254/v1",
        "http://[::1]:9/v1",
        "http://2130706433/",
    ):
        with pytest.raises(InvalidInput) as refused:
            set_models(world.id, (_at(at),), expected=None, by=None, reason="Ours.")
        assert [one["pointer"] for one in refused.value.data["errors"]] == ["/profiles/0/base_url"]
    keep_secret(world.id, "other", KEY, origin="https://api.openai.com", by=None)
    with pytest.raises(InvalidInput) as refused:
        name(world, own, secret="other")
    assert [one["pointer"] for one in refused.value.data["errors"]] == ["/profiles/0/secret"]
    assert own.seen == []


def _at(url: str) -> dict[str, object]:
    return {
        "name": "main", "provider": "openai", "model": "m", "base_url": url, "roles": ["executor"],
        "price": FREE,
    }  # fmt: skip


@proves("R-BUDGET-15", part="a model at an own address is asked once its price is known")
def test_a_model_at_an_own_address_is_put_in_force_once_its_price_is_stated(world: World, own: Own) -> None:
    with pytest.raises(InvalidInput) as refused:
        name(world, own, price=None)
    assert [one["pointer"] for one in refused.value.data["errors"]] == ["/profiles/0/price"]
    name(world, own)
    with tenant_transaction(world.id):
        (row,) = Price.objects.filter(provider="openai", model="large")
        assert (row.price["input"], row.price["output"], row.version) == ("0", "0", 1)
        assert row.valid_from is not None
    own.play(failing(500), said("Delivered."))
    found = onwards(world, world.submit("tool-loop", GOAL))
    assert found.terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        assert get_usage_lines(found.id)[Dimension.COST_USD].used == 0
    # Stated once it is known; the same again is no new version, another price is.
    name(world, own, price=None, timeout_ms=30_000)
    name(world, own, timeout_ms=20_000)
    name(world, own, price={"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "1.5"})
    with tenant_transaction(world.id):
        versions = Price.objects.filter(provider="openai", model="large").values_list("version", flat=True)
        assert sorted(versions) == [1, 2]
    with pytest.raises(InvalidInput) as refused:
        name(world, own, price={"input_usd_per_mtok": "-1", "output_usd_per_mtok": "0"})
    assert [one["pointer"] for one in refused.value.data["errors"]] == ["/profiles/0/price"]


@proves("R-TOOL-22", part="a model without its key is not put in force")
def test_a_model_at_its_providers_address_is_put_in_force_with_its_key_alone(world: World) -> None:
    given = {"name": "main", "provider": "openai", "model": "gpt-5.4", "roles": ["executor"]}
    with pytest.raises(InvalidInput) as refused:
        set_models(world.id, (given,), expected=None, by=None, reason="Ours.")
    assert [one["pointer"] for one in refused.value.data["errors"]] == ["/profiles/0/secret"]
    # One that nobody asks may wait for its key.
    keep_secret(world.id, "openai", KEY, origin="https://api.openai.com", by=None)
    keyed = {**given, "secret": "openai"}
    spare = {"name": "spare", "provider": "anthropic", "model": "claude-haiku-4-5"}
    set_models(world.id, (keyed, spare), expected=None, by=None, reason="Ours.")
    with pytest.raises(InvalidInput) as refused:
        set_models(
            world.id,
            ({**keyed, "failover": ["spare"]}, spare),
            expected=None,
            by=None,
            reason="It takes over.",
        )
    assert [one["pointer"] for one in refused.value.data["errors"]] == ["/profiles/1/secret"]


@proves("W3", part="model addresses, at connect")
def test_an_address_that_may_be_reached_no_more_is_not_asked(world: World, own: Own) -> None:
    name(world, own)
    run = world.submit("tool-loop", GOAL)
    set_places(world.id, (), expected=None, by=None, reason="No more.")
    found = onwards(world, run)
    assert (found.terminal_code, found.reason) == ("UNAVAILABLE_DEP", "egress_refused")
    assert own.seen == []


@proves("R-TOOL-22", part="a tenant's impatience shuts nobody else out")
def test_what_one_tenants_model_does_opens_its_own_circuit_alone(
    world: World, own: Own, superuser: psycopg.Connection
) -> None:
    at = f"%{own.origin.removeprefix('http://')}%"
    # A port is given out again: the operator's model of an earlier test may have failed behind this one.
    superuser.execute("DELETE FROM orchestrator_circuitrow WHERE subject LIKE %s", (at,))
    name(world, own, max_retries=2)
    own.play(*(failing(500) for _ in range(6)))
    for _ in range(2):
        onwards(world, world.submit("tool-loop", GOAL, mode=Mode.INTERACTIVE))
    rows = superuser.execute(
        "SELECT kind, tenant_id, state FROM orchestrator_circuitrow WHERE subject LIKE %s", (at,)
    ).fetchall()
    assert rows == [("use", world.id, "open")]
