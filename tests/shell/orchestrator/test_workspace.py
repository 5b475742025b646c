"""A run's files in the database: what was, stays; what is made is made once, and for what was seen."""

from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError, transaction

from orchestrator.core.common.errors import WorkspaceMoved
from orchestrator.knowledge.actions.workspace import change_files, hand_in, restore_files
from orchestrator.knowledge.models.workspace import FileContent, WorkspaceRevision
from orchestrator.knowledge.queries.workspace import (
    find_file_content,
    get_newest_revision,
    get_workspace_revision,
    list_workspace_revisions,
    load_file_contents,
)
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.tenancy import make_tenant
from tests.factories.world import make_world
from tests.proves import proves

FILES = {"a.txt": b"one\n", "b/c.bin": b"\0\xff"}


@pytest.fixture
def run(house: House) -> UUID:
    """A run that may have files."""
    return make_world(house).submit("tool-loop", "Look at the files.")


@proves("R-TOOL-19", part="workspace kept")
def test_every_state_of_the_files_can_be_read_again(house: House, run: UUID) -> None:
    with tenant_transaction(house.tenant.id):
        handed = hand_in(house.tenant.id, run, FILES)
        changed = change_files(
            house.tenant.id,
            run,
            key="k1",
            base=handed.digest,
            changes={"a.txt": None, "d": b"2"},
            summary="s",
        )
        back = restore_files(house.tenant.id, run, key="k2", base=changed.digest, number=0)
        assert [one.number for one in list_workspace_revisions(run)] == [0, 1, 2]
        assert (set(changed.tree.by_path), back.digest) == ({"b/c.bin", "d"}, handed.digest)
        assert load_file_contents(run, get_newest_revision(run).tree.entries) == FILES
        assert find_file_content(get_workspace_revision(run, 1), "d") == b"2"
        assert find_file_content(get_workspace_revision(run, 1), "a.txt") is None
        with pytest.raises(NotFound):
            get_workspace_revision(run, 3)


@proves("R-TOOL-9", part="workspace: once a key")
def test_the_same_key_changes_the_files_once(house: House, run: UUID) -> None:
    with tenant_transaction(house.tenant.id):
        base = hand_in(house.tenant.id, run, FILES).digest
        for _ in range(2):
            made = change_files(house.tenant.id, run, key="k", base=base, changes={"a.txt": b"2"}, summary="")
            assert made.number == 1
        with pytest.raises(WorkspaceMoved):
            change_files(house.tenant.id, run, key="other", base=base, changes={"a.txt": b"3"}, summary="")
        assert find_file_content(get_newest_revision(run), "a.txt") == b"2"


@proves("R-TOOL-19", part="workspace of one tenant")
def test_files_are_seen_by_their_tenant_alone(house: House, run: UUID) -> None:
    with tenant_transaction(house.tenant.id):
        hand_in(house.tenant.id, run, FILES)
    other = make_tenant()
    with tenant_transaction(other.id):
        assert get_newest_revision(run).tree.entries == ()
        with pytest.raises(IntegrityError), transaction.atomic():
            hand_in(other.id, run, FILES)


@pytest.mark.parametrize("model", [FileContent, WorkspaceRevision])
def test_files_cannot_be_rewritten(
    house: House, run: UUID, model: type[FileContent] | type[WorkspaceRevision]
) -> None:
    with tenant_transaction(house.tenant.id):
        hand_in(house.tenant.id, run, FILES)
        for statement in (
            f"UPDATE {model._meta.db_table} SET digest = ''",
            f"DELETE FROM {model._meta.db_table}",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), transaction.atomic():
                raw_cursor().execute(statement)
        with pytest.raises(IntegrityError), transaction.atomic():
            FileContent.objects.create(tenant_id=house.tenant.id, run_id=run, digest="0" * 64, body=b"x")
