"""A trace as people read it: one row for a call with its attempts and its result (R-UI-3)."""

from orchestrator.core.readmodel.timeline.duration_scale import bar_of
from orchestrator.core.readmodel.timeline.event_folding import Row, fold
from orchestrator.core.readmodel.timeline.event_labels import KINDS, Mood, Told, Voice, said_of

__all__ = ["KINDS", "Mood", "Row", "Told", "Voice", "bar_of", "fold", "said_of"]
