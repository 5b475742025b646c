"""Migrations that make several tables: their models are rendered once, not once a table.

All models refer to a tenant, so each new one makes Django render every model again that is there. A fresh
database was mostly that.
"""

from copy import copy
from itertools import takewhile
from typing import Any

from django.db import migrations
from django.db.migrations.operations.base import Operation


class MadeTogether(migrations.Migration):
    """Takes the tables that stand first in one step; what follows them goes on as ever."""

    def apply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """As the base class says."""
        first = list(takewhile(_is_create_model, self.operations))
        if collect_sql or not first:
            return super().apply(project_state, schema_editor, collect_sql)
        before = project_state.clone()
        # Whoever asks for the models next has them rendered with all of the new ones.
        project_state.__dict__.pop("apps", None)
        for operation in first:
            operation.state_forwards(self.app_label, project_state)
        for operation in first:
            operation.database_forwards(self.app_label, schema_editor, before, project_state)
        rest = copy(self)
        rest.operations = self.operations[len(first) :]  # type: ignore[misc]  # each instance has its own
        return super(MadeTogether, rest).apply(project_state, schema_editor)


def _is_create_model(operation: Operation) -> bool:
    return isinstance(operation, migrations.CreateModel)
