"""Registers the orchestrator's adapters with the packages below it."""

from argparse import ArgumentParser

from approvals.ports import register_edit_check, register_extension_check
from approvals.ports import register_runs as register_asking_runs
from orchestrator.actions.argument_edits import judge_edit
from orchestrator.actions.budget_extensions import judge_extension
from orchestrator.actions.email_drafts import keep_draft
from orchestrator.actions.memory import propose_memory
from orchestrator.actions.review_queue import request_review
from orchestrator.gateways.tools.memory_port import register_proposer
from orchestrator.gateways.tools.review_port import register_review_asker
from orchestrator.gateways.tools.tenant_services import register_draft_keeper
from orchestrator.queries.approvals_adapter import AskingRuns
from orchestrator.queries.replays import replay_lines
from orchestrator.queries.traces_adapter import TracedRuns
from traces.ports import register_runs
from traces.subcommands import Verb, register_verb


def no_arguments(_: ArgumentParser) -> None:
    """Replay takes no argument except the run."""


register_edit_check(judge_edit)
register_extension_check(judge_extension)
register_asking_runs(AskingRuns())
register_runs(TracedRuns())
register_draft_keeper(keep_draft)
register_proposer(propose_memory)
register_review_asker(request_review)
register_verb("replay", Verb("run the recorded events through the core again", no_arguments, replay_lines))
