"""The names of the news from the trace."""

from django.dispatch import Signal

appended = Signal()
"""Sent after commit with tenant_id, run_id and seq, the run's newest event."""
