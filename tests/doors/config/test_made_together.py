"""Migrations that make their tables together make what they would make one by one."""

from __future__ import annotations

from copy import copy

import pytest
from django.db import connection
from django.db.migrations import CreateModel, Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from tenancy.db.migration_operations import MadeTogether
from tests.conftest import House

LOADER = MigrationLoader(None, ignore_no_migrations=True)
TOGETHER = sorted(key for key, found in LOADER.disk_migrations.items() if isinstance(found, MadeTogether))


def made(kind: type[Migration], found: Migration, before: ProjectState) -> tuple[list[str], ProjectState]:
    """What the tables of a migration are made by, in a migration of this kind, and the models afterwards."""
    one = copy(found)
    one.__class__ = kind
    with connection.schema_editor(collect_sql=True, atomic=False) as editor:
        after = one.apply(before, editor)
    return sorted(editor.collected_sql), after


@pytest.mark.parametrize("key", TOGETHER, ids="-".join)
def test_tables_made_together_are_those_made_one_by_one(house: House, key: tuple[str, str]) -> None:
    found = LOADER.disk_migrations[key]
    assert {type(operation) for operation in found.operations} == {CreateModel}
    before = LOADER.project_state(key, at_end=False)
    together, after = made(MadeTogether, found, before.clone())
    one_by_one, expected = made(Migration, found, before.clone())
    assert together == one_by_one != []
    assert after.models.keys() == expected.models.keys()
