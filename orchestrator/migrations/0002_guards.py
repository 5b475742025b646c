"""Guards of the orchestrator: tenants are apart, versions and intents are for ever, and runs make legal moves only."""

from django.db import migrations

from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    grant_table_rights,
    never_truncated,
    read_sql,
    row_security,
    same_tenant_key,
)

APPENDED = (
    "corpusdocument", "corpuspassage", "dispatch", "filecontent", "intent", "maildraft", "manifestrow",
    "memoryproposal", "memoryverdict", "outside", "pinset", "policyversion", "privateplaces", "promptversion",
    "registryversion", "reviewword", "runsignal", "signalreceipt", "task", "tooldefinition", "toolversion",
    "workspacerevision",
)  # fmt: skip
# What the application may do with the other rows of a tenant.
CHANGED = {
    "boundaryversion": "SELECT, INSERT, UPDATE (retired_at)",
    "conflictclaim": "SELECT, INSERT, UPDATE",
    "expectation": "SELECT, INSERT, UPDATE",
    "modelserved": "SELECT",
    "modelturn": "SELECT, INSERT, UPDATE, DELETE",
    "policyproposal": "SELECT, INSERT, UPDATE",
    "reviewitem": "SELECT, INSERT, UPDATE (answered_at)",
    "run": "SELECT, INSERT, UPDATE",
    "savedview": "SELECT, INSERT, UPDATE, DELETE",
    "servertool": "SELECT, INSERT, UPDATE",
    "toolproposal": "SELECT, INSERT, UPDATE",
    "toolserver": "SELECT, INSERT, UPDATE",
    "workflowversion": "SELECT, INSERT, UPDATE",
}
# Some rows of these tables belong to nobody; their policies are in sql/stops_and_circuits.sql.
OF_ALL = {
    "circuitrow": "SELECT, INSERT, UPDATE",
    "emergencystop": "SELECT, INSERT, UPDATE (lifted_at, lifted_by)",
}
# What functions that cross tenants look at, and change.
CROSSED = (
    ("run", "SELECT"), ("runsignal", "SELECT"), ("signalreceipt", "SELECT"), ("modelturn", "SELECT"),
    ("modelturn", "UPDATE"), ("modelserved", "SELECT"), ("modelserved", "UPDATE"),
)  # fmt: skip
REFERENCES = (
    ("corpuspassage", "document_id", "orchestrator_corpusdocument"),
    ("dispatch", "run_id", "orchestrator_run"),
    ("filecontent", "run_id", "orchestrator_run"),
    ("memoryproposal", "run_id", "orchestrator_run"),
    ("memoryverdict", "proposal_id", "orchestrator_memoryproposal"),
    ("reviewitem", "run_id", "orchestrator_run"),
    ("reviewword", "item_id", "orchestrator_reviewitem"),
    ("run", "retry_of_id", "orchestrator_run"),
    ("run", "task_id", "orchestrator_task"),
    ("run", "workflow_version_id", "orchestrator_workflowversion"),
    ("runsignal", "run_id", "orchestrator_run"),
    ("savedview", "principal", "tenancy_principal"),
    ("servertool", "server_id", "orchestrator_toolserver"),
    ("tooldefinition", "server_id", "orchestrator_toolserver"),
    ("workspacerevision", "run_id", "orchestrator_run"),
)
FILES = (
    "runs", "retries", "reach", "signals", "permits", "dispatch", "stops_and_circuits", "model_turns", "versions",
    "tools", "reviews", "files",
)  # fmt: skip


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [
        ("orchestrator", "0001_initial"), ("tenancy", "0002_guards"), ("budgets", "0002_guards"),
        ("approvals", "0002_guards"), ("traces", "0002_guards"),
    ]  # fmt: skip
    operations = [
        migrations.RunSQL(
            [
                *(row_security(f"orchestrator_{table}") for table in (*APPENDED, *CHANGED)),
                *(grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT") for table in APPENDED),
                *(
                    grant_table_rights(f"orchestrator_{table}", rights)
                    for table, rights in (CHANGED | OF_ALL).items()
                ),
                *(append_only(f"orchestrator_{table}") for table in APPENDED),
                *(never_truncated(f"orchestrator_{table}") for table in ("boundaryversion", "reviewitem")),
                *(
                    same_tenant_key(f"orchestrator_{table}", column, target)
                    for table, column, target in REFERENCES
                ),
                *(create_cross_tenant_policy(f"orchestrator_{table}", command) for table, command in CROSSED),
                *read_sql(__file__, *FILES),
            ]
        )
    ]
