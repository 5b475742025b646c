"""Loads what the first turn of a new worker needs, before the worker reports that it is ready."""

from django.conf import settings
from django.db import connection

from orchestrator.core.nodes import discover_node_kinds
from orchestrator.core.policy.detectors import discover_detectors
from orchestrator.core.results.validators import known_validators
from orchestrator.llm.gateways.client import load_remote_models
from orchestrator.runs.gateways.job_queue import connect_broker
from orchestrator.tenants.queries.cross_tenant import next_run
from orchestrator.tools.gateways.registry import particular_tools, shipped_tools


def load_first_turn() -> None:
    """Load modules and connections that the first turn needs.

    These are the modules found by their folder, the connections of broker and database, and the libraries of
    the providers for which the operator configured a model.

    Raises: django.db.Error.
    """
    for load in (discover_node_kinds, known_validators, discover_detectors, shipped_tools, particular_tools):
        load()
    if settings.OPENAI_API_KEY or settings.ANTHROPIC_API_KEY or settings.OPENAI_BASE_URL:
        load_remote_models()
    connect_broker()
    try:
        next_run([], 0)
    finally:
        connection.close()
