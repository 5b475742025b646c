"""The request and response bodies of reconciliation after a run's end."""

from typing import Any, get_args

from rest_framework import serializers

from orchestrator.core.engine.late_reconciliation import Why
from tenancy.rest.serializer_fields import FormattedCharField, StrictCharField, StrictSerializer

EFFECT = r"^[0-9a-f]{32}$"


class LookUpBody(StrictSerializer):
    """Which change is looked up."""

    effect = FormattedCharField(EFFECT)


class ReconcileBody(StrictSerializer):
    """Whether a change happened, and how that is known."""

    effect = FormattedCharField(EFFECT)
    verdict = serializers.ChoiceField(choices=["happened", "not_happened"])
    reason = StrictCharField(max_length=500)


class DoubtRow(serializers.Serializer[Any]):
    """A change of which nobody knows whether it happened. `why`: nobody answered the request (in_doubt), its
    answer said that it failed (open), so it is with what was to take a change back (undo_in_doubt), its
    outcome came too late (learnt_late), or came after it was said that nothing happened (reopened).
    `being_recorded`: a word or a look-up waits for the run's next record. `arguments` null: they were
    erased."""

    effect = serializers.CharField()
    call = serializers.CharField()
    tool = serializers.CharField()
    why = serializers.ChoiceField(choices=list(get_args(Why)))
    blocks_retry = serializers.BooleanField()
    can_look_up = serializers.BooleanField()
    being_recorded = serializers.BooleanField()
    request = serializers.UUIDField(allow_null=True)
    arguments = serializers.DictField(allow_null=True)


class DoubtList(serializers.Serializer[Any]):
    """All changes in doubt of a run, in the order in which they were asked for."""

    results = DoubtRow(many=True)
