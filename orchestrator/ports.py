"""What the orchestrator lends to the floors below."""

from approvals.ports import register_edit_check
from orchestrator.actions.editing import judge_edit
from orchestrator.queries.traced import TracedRuns
from traces.ports import register_runs

register_edit_check(judge_edit)
register_runs(TracedRuns())
