"""Imports the tables of every subject, so that Django knows them: nothing else imports this module."""

from importlib import import_module

for subject in (
    "orchestrator.knowledge.models.memory",
    "orchestrator.knowledge.models.workspace",
    "orchestrator.llm.models",
    "orchestrator.outbound.models",
    "orchestrator.policies.models",
    "orchestrator.publishing.models",
    "orchestrator.reviews.models",
    "orchestrator.runs.models.emergency_stop",
    "orchestrator.runs.models.resource_lock",
    "orchestrator.runs.models.run",
    "orchestrator.runs.models.saved_view",
    "orchestrator.runs.models.task",
    "orchestrator.runs.models.usage_estimate",
    "orchestrator.tools.models.destinations",
    "orchestrator.tools.models.tool_proposal",
    "orchestrator.tools.models.tool_server",
):
    import_module(subject)
