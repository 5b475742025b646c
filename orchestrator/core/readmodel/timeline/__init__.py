"""A trace as people read it: one row for a call with its attempts and its result (R-UI-3)."""

from orchestrator.core.readmodel.timeline.duration_scale import bar_of
from orchestrator.core.readmodel.timeline.event_folding import Row, fold_events
from orchestrator.core.readmodel.timeline.event_labels import KINDS, EventLabel, Mood, Voice, said_of

__all__ = ["KINDS", "EventLabel", "Mood", "Row", "Voice", "bar_of", "fold_events", "said_of"]
