"""The response bodies of a run's plan."""

from typing import Any

from rest_framework import serializers

from orchestrator.core.readmodel.run_plan import CriterionState, StepStanding

WAITS = ["decision", "verdict", "answer", "budget", "resume", "retry", "claim"]


class WaitField(serializers.Serializer[Any]):
    """What a step waits for: the open request where people are asked, and when that ends or when it is looked
    at again."""

    what = serializers.ChoiceField(choices=WAITS)
    request = serializers.UUIDField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)


class StepField(serializers.Serializer[Any]):
    """One step. `name` is a tool as it was asked for, or a node; `by` the node that asked, `model` or `undo`.

    `after` are the ids of the steps that are not over and come before it. `event` is the number of the event
    in which its call was asked for. `gated` says that people decide before it is sent; `became` that it was
    taken back (undone) or could not be (left).
    """

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=["call", "model", "question"])
    name = serializers.CharField(allow_blank=True)
    by = serializers.CharField()
    node = serializers.CharField(allow_null=True)
    call = serializers.CharField(allow_null=True)
    event = serializers.IntegerField(allow_null=True)
    fact = serializers.CharField(allow_null=True)
    standing = serializers.ChoiceField(choices=[one.value for one in StepStanding])
    why = serializers.CharField(allow_null=True)
    wait = WaitField(allow_null=True)
    after = serializers.ListField(child=serializers.CharField())
    gated = serializers.BooleanField()
    became = serializers.ChoiceField(choices=["undone", "left"], allow_null=True)


class CriterionField(serializers.Serializer[Any]):
    """An acceptance criterion of the goal, or of the workflow at a node; nobody looked at an `open` one."""

    validator = serializers.CharField()
    parameters = serializers.DictField(child=serializers.JSONField(allow_null=True))
    of = serializers.ChoiceField(choices=["goal", "workflow"])
    node = serializers.CharField(allow_null=True)
    met = serializers.ChoiceField(choices=[one.value for one in CriterionState])


class PlanField(serializers.Serializer[Any]):
    """The steps of a run in an order in which each stands behind all that it comes after, and its criteria.

    Only the calls of the newest turn are steps; what earlier ones did is among the events.
    """

    over = serializers.BooleanField()
    steps = StepField(many=True)
    criteria = CriterionField(many=True)
