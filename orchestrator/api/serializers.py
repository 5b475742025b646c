"""What programs send and get: the typed shapes of the API's document."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from orchestrator.core.terminal import Status


class CriterionField(serializers.Serializer[Any]):
    validator = serializers.CharField(max_length=64)
    parameters = serializers.DictField(child=serializers.JSONField(), required=False)


class GoalField(serializers.Serializer[Any]):
    """The goal object (R-GRAPH-13)."""

    objective = serializers.CharField(max_length=20_000)
    acceptance = CriterionField(many=True, required=False)
    constraints = serializers.ListField(
        child=serializers.CharField(max_length=2_000), required=False, max_length=50
    )
    inputs = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    output_schema = serializers.DictField(child=serializers.JSONField(), required=False, allow_null=True)
    done_condition = serializers.CharField(max_length=2_000, required=False, allow_blank=True)
    validation_method = serializers.CharField(max_length=2_000, required=False, allow_blank=True)
    stop_rules = serializers.ListField(
        child=serializers.CharField(max_length=2_000), required=False, max_length=20
    )
    deadline = serializers.DateTimeField(required=False, allow_null=True)
    requires_human_approval = serializers.BooleanField(required=False)


class TaskBody(serializers.Serializer[Any]):
    """A task to be done."""

    workflow = serializers.CharField(max_length=64)
    goal = GoalField()
    mode = serializers.ChoiceField(choices=["interactive", "async", "long_running"], required=False)
    boundary = serializers.CharField(max_length=64, required=False)
    budget = serializers.DictField(
        child=serializers.DecimalField(max_digits=24, decimal_places=9, min_value=0), required=False
    )
    metadata = serializers.DictField(child=serializers.JSONField(), required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Nothing unknown: a misspelt limit must not be a silent one."""
        unknown = [name for name in self.initial_data if name not in self.fields]
        strange = [f"goal.{n}" for n in self.initial_data["goal"] if n not in self.fields["goal"].fields]  # type: ignore[attr-defined]
        if unknown or strange:
            raise serializers.ValidationError(dict.fromkeys(unknown + strange, "This field is not known."))
        return attrs


class RunLinks(serializers.Serializer[Any]):
    run = serializers.CharField()
    events = serializers.CharField()
    result = serializers.CharField()
    trace = serializers.CharField()


class AcceptedRun(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=[status.value for status in Status])


class TaskAccepted(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    run = AcceptedRun()
    links = RunLinks()


class ReasonBody(serializers.Serializer[Any]):
    """Why."""

    reason = serializers.CharField(max_length=1_000, required=False, allow_blank=True, default="")


class AmountsField(serializers.Serializer[Any]):
    limit = serializers.CharField(allow_null=True)
    used = serializers.CharField()
    reserved = serializers.CharField()
    left = serializers.CharField(allow_null=True)


class RunField(serializers.Serializer[Any]):
    """A run as it stands."""

    id = serializers.UUIDField()
    task = serializers.UUIDField()
    workflow = serializers.CharField()
    workflow_version = serializers.IntegerField()
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    node = serializers.CharField()
    terminal_code = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField()
    scripted = serializers.BooleanField()
    mode = serializers.CharField()
    budget = serializers.DictField(child=AmountsField())
    pins = serializers.DictField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    links = RunLinks()


class RunRow(serializers.Serializer[Any]):
    """A run in a list."""

    id = serializers.UUIDField()
    workflow = serializers.CharField()
    status = serializers.CharField()
    node = serializers.CharField()
    terminal_code = serializers.CharField(allow_null=True)
    scripted = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class EventField(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    phase = serializers.IntegerField()
    phase_name = serializers.CharField()
    kind = serializers.CharField()
    actor = serializers.CharField()
    payload = serializers.DictField(child=serializers.JSONField())
    hash = serializers.CharField()


class ReplayField(serializers.Serializer[Any]):
    """What came of a replay."""

    matches = serializers.BooleanField()
    records = serializers.IntegerField()
    first_difference = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)


def page_of(row: type[serializers.Serializer[Any]]) -> serializers.SerializerMetaclass:
    """The shape of a page of rows."""
    fields = {
        "results": row(many=True),
        "next": serializers.CharField(allow_null=True),
        "previous": serializers.CharField(allow_null=True),
    }
    return type(f"{row.__name__}Page", (serializers.Serializer,), fields)  # type: ignore[return-value]


def stamp(at: datetime | None) -> str | None:
    """A time as it is written."""
    return at.isoformat() if at is not None else None
