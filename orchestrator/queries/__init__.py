"""Reads of the orchestrator."""
