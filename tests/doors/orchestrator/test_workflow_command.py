"""`manage.py workflow`: what is typed and what is said (R-GRAPH-4)."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from orchestrator import bundled_content
from orchestrator.publishing.models import WorkflowVersion
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.world import World
from tests.proves import proves

FILE = bundled_content.HERE / "workflows" / "tool-loop.yaml"


def typed(world: World, *words: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("workflow", *words, "--tenant", world.house.tenant.slug, stdout=out)
    return out.getvalue()


@proves("R-GRAPH-4", part="the command line")
def test_compile_publish_show_list_retire(world: World, scratch: Path) -> None:
    mine = scratch / "mine.yaml"
    mine.write_text(FILE.read_text().replace("title: Tool loop", "title: Mine"))
    digest = typed(world, "compile", str(mine)).split()[0]
    with tenant_transaction(world.id):
        assert WorkflowVersion.objects.filter(slug="tool-loop").count() == 1
    assert typed(world, "publish", str(mine)) == f"tool-loop v2  {digest}  published\n"
    assert typed(world, "publish", str(mine)) == f"tool-loop v2  {digest}  stands already\n"
    assert "tool-loop  v2  tier 6  published  0 runs" in typed(world, "list")
    shown = scratch / "shown.yaml"
    shown.write_text(typed(world, "show", "tool-loop"))
    assert typed(world, "compile", str(shown)).split()[0] == digest
    assert typed(world, "retire", "tool-loop", "--number", "2", "--reason", "no") == "tool-loop v2 retired\n"
    assert "title: Tool loop" in typed(world, "show", "tool-loop")
    assert "title: Mine" in typed(world, "show", "tool-loop", "--number", "2")


def test_faults_are_written_as_compilers_write_them(world: World, scratch: Path) -> None:
    broken = scratch / "broken.yaml"
    text = FILE.read_text().replace("{id: judge, kind: verify_output}", "{id: judge, kind: guess}")
    broken.write_text(text)
    line = 1 + next(at for at, found in enumerate(text.splitlines()) if "kind: guess" in found)
    errors = StringIO()
    with pytest.raises(CommandError, match="does not compile"):
        call_command("workflow", "publish", str(broken), "--tenant", world.house.tenant.slug, stderr=errors)
    assert f"{broken}:{line}: 2 known-kind: judge: " in errors.getvalue()


def test_what_is_not_there_is_said(world: World) -> None:
    with pytest.raises(CommandError, match="no tenant"):
        call_command("workflow", "list", "--tenant", "nobody")
    with pytest.raises(CommandError, match="no workflow"):
        typed(world, "show", "none")
    with pytest.raises(CommandError, match="absent"):
        typed(world, "compile", "absent.yaml")
