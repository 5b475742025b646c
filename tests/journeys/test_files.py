"""Runs that work on files: what they change is theirs, is read back, and can be made apart."""

from decimal import Decimal
from uuid import UUID

import pytest
from pytest_django import Settings

from orchestrator import bundled_content
from orchestrator.core.domain.boundary import ToolGrant
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.knowledge.actions.workspace import hand_in
from orchestrator.knowledge.queries.workspace import get_newest_revision, list_workspace_revisions
from orchestrator.publishing.actions.versions import publish_boundary, publish_workflow
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.openai_server import Call
from tests.factories.foreign import Obedient, called, foreign, onwards
from tests.factories.world import World, make_world
from tests.proves import proves
from tests.shell.orchestrator.test_file_tools import FILES, FIX, GONE


@pytest.fixture
def world(house: House) -> World:
    """A furnished house."""
    return make_world(house)


def granting(world: World, *, sandbox: bool, side_effects: int = 3) -> None:
    """The tool loop may work on files and run scripts."""
    boundary = bundled_content.load_bundled_boundaries()["tool-loop-default"]
    spec = bundled_content.load_bundled_workflows()["tool-loop"]
    names = ("files.*", "sandbox.*")
    grants = tuple(ToolGrant(name=name, risk_ceiling=Risk.DESTRUCTIVE, sandbox=sandbox) for name in names)
    budget = {**boundary.budget, "side_effects": Decimal(side_effects)}
    with tenant_transaction(world.id):
        publish_boundary(world.id, boundary.evolve(tools=(*boundary.tools, *grants), budget=budget), by=None)
        publish_workflow(world.id, spec.evolve(tools=(*spec.tools, *names)), by=None)


def handed(world: World) -> tuple[UUID, str]:
    """A run with files, and the digest of their state."""
    run = world.submit("tool-loop", "Mend the adder.")
    with tenant_transaction(world.id):
        return run, hand_in(world.id, run, FILES).digest


def asking(*calls: Call) -> Obedient:
    """A model that asks for these calls."""
    return Obedient(*calls, answer="The adder adds.")


@proves("R-TOOL-12", part="files read back")
@proves("R-TOOL-19", part="files in a run")
def test_a_change_within_the_boundary_is_made_and_read_back_without_a_person(
    world: World, settings: Settings
) -> None:
    granting(world, sandbox=False)
    with foreign(settings, asking()) as model:
        run, base = handed(world)
        model._asked = (called("files.apply_diff", diff=FIX, base=base),)  # type: ignore[attr-defined]
        found = onwards(world, run)
    assert found.terminal_code == "SUCCESS"
    assert [one["verdict"] for one in world.said(run, "call_verified")] == ["verified"]
    with tenant_transaction(world.id):
        assert [one.summary for one in list_workspace_revisions(run)] == ["", "src/app.py +1 -1"]
    world.sound(run)


def test_what_deletes_files_waits_for_a_person(world: World, settings: Settings) -> None:
    granting(world, sandbox=False)
    with foreign(settings, asking()) as model:
        run, base = handed(world)
        model._asked = (called("files.apply_broad", diff=GONE, base=base),)  # type: ignore[attr-defined]
        onwards(world, run)
        (request,) = world.open_requests(run)
        with tenant_transaction(world.id):
            assert get_newest_revision(run).number == 0
        world.decide(request, world.people.approver)
        onwards(world, run)
    with tenant_transaction(world.id):
        assert get_newest_revision(run).number == 1
    world.sound(run)


@proves("R-TOOL-5", part="sandbox")
def test_a_call_that_may_only_be_made_apart_changes_nothing_and_says_so(
    world: World, settings: Settings
) -> None:
    granting(world, sandbox=True)
    with foreign(settings, asking()) as model:
        run, base = handed(world)
        model._asked = (called("files.apply_broad", diff=GONE, base=base),)  # type: ignore[attr-defined]
        found = onwards(world, run)
    assert found.terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        assert get_newest_revision(run).digest == base
    (risk,) = [one for one in world.said(run, "call_checked") if one["step"] == "risk"]
    assert (risk["decision"], risk["rule"]) == ("sandbox", "boundary_sandbox")
    assert risk["boundary"]
    (attempted,) = world.said(run, "call_attempted")
    assert attempted["mutating"] is False
    world.sound(run)
