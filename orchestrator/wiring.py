"""Registers the orchestrator's adapters with the packages below it."""

from argparse import ArgumentParser

from approvals.ports import register_edit_check, register_extension_check
from approvals.ports import register_runs as register_asking_runs
from orchestrator.decisions.actions.argument_edits import judge_edit
from orchestrator.decisions.queries.approvals_adapter import AskingRuns
from orchestrator.knowledge.actions.email_drafts import keep_draft
from orchestrator.knowledge.actions.memory import propose_memory
from orchestrator.reviews.actions.review_queue import request_review
from orchestrator.runs.queries.replays import replay_lines
from orchestrator.runs.queries.traces_adapter import TracedRuns
from orchestrator.spending.actions.budget_extensions import judge_extension
from orchestrator.tools.gateways.ports.memory_port import register_proposer
from orchestrator.tools.gateways.ports.review_port import register_review_asker
from orchestrator.tools.gateways.tenant_services import register_draft_keeper
from traces.ports import register_runs
from traces.subcommands import Subcommand, register_verb


def no_arguments(_: ArgumentParser) -> None:
    """Replay takes no argument except the run."""


register_edit_check(judge_edit)
register_extension_check(judge_extension)
register_asking_runs(AskingRuns())
register_runs(TracedRuns())
register_draft_keeper(keep_draft)
register_proposer(propose_memory)
register_review_asker(request_review)
register_verb(
    "replay", Subcommand("run the recorded events through the core again", no_arguments, replay_lines)
)
