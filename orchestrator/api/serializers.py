"""The request and response bodies of the API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from orchestrator.core.common.run_status import Status, TerminalCode
from orchestrator.core.files.workspace import MOST_FILES
from orchestrator.knowledge.api.file_serializers import FileBody
from tenancy.rest.serializer_fields import (
    Amount,
    Moment,
    PageQuery,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from tenancy.rest.serializer_fields import ReasonBody as ReasonBody
from tenancy.rest.serializer_fields import format_timestamp as format_timestamp

STATUSES = [status.value for status in Status]
CODES = [code.value for code in TerminalCode]
MODES = ["interactive", "async", "long_running"]


@extend_schema_field({"type": ["string", "integer", "boolean"]})
class Parameter(serializers.JSONField):
    """A parameter of a validator: a text, a whole number, a flag or null."""

    default_error_messages = {"invalid": "Not a text, a whole number, a flag or null."}

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated value.

        Raises: ValidationError.
        """
        if data is None or isinstance(data, str | int | bool):
            return data
        return self.fail("invalid")


class CriterionField(StrictSerializer):
    """One acceptance criterion: a named validator with its parameters."""

    validator = StrictCharField(max_length=64)
    parameters = serializers.DictField(child=Parameter(allow_null=True), required=False)


class GoalField(StrictSerializer):
    """The goal object (R-GRAPH-13)."""

    objective = StrictCharField(max_length=20_000)
    acceptance = CriterionField(many=True, required=False, max_length=50)  # type: ignore[call-arg]
    constraints = serializers.ListField(
        child=StrictCharField(max_length=2_000), required=False, max_length=50
    )
    inputs = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    output_schema = serializers.DictField(
        child=serializers.JSONField(allow_null=True), required=False, allow_null=True
    )
    done_condition = StrictCharField(max_length=2_000, required=False, allow_blank=True)
    validation_method = StrictCharField(max_length=2_000, required=False, allow_blank=True)
    stop_rules = serializers.ListField(child=StrictCharField(max_length=2_000), required=False, max_length=20)
    deadline = Moment(required=False, allow_null=True)
    requires_human_approval = StrictBooleanField(required=False)


class TaskBody(StrictSerializer):
    """A task to be done. `budget` asks for less than the boundary gives, by dimension."""

    workflow = StrictCharField(max_length=64)
    goal = GoalField()
    mode = serializers.ChoiceField(choices=MODES, required=False)
    boundary = StrictCharField(max_length=64, required=False)
    budget = serializers.DictField(child=Amount(), required=False)
    metadata = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    files = FileBody(many=True, required=False, max_length=MOST_FILES)  # type: ignore[call-arg]


class RunLinks(serializers.Serializer[Any]):
    """Where more of a run is."""

    run = serializers.CharField()
    events = serializers.CharField()
    plan = serializers.CharField()
    result = serializers.CharField()
    trace = serializers.CharField()


class AcceptedRun(serializers.Serializer[Any]):
    """A run that was accepted."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=STATUSES)


class TaskAccepted(serializers.Serializer[Any]):
    """An accepted task with its run, or a task with the further run that was accepted for it."""

    id = serializers.UUIDField()
    run = AcceptedRun()
    links = RunLinks()


class NothingBody(StrictSerializer):
    """An empty object."""


class RunFilters(PageQuery):
    """Which runs: `q` is a part of the id or of the workflow's name."""

    status = serializers.ChoiceField(choices=STATUSES, required=False)
    workflow = StrictCharField(max_length=64, required=False)
    terminal_code = serializers.ChoiceField(choices=CODES, required=False)
    created_after = Moment(required=False)
    q = StrictCharField(max_length=200, required=False)


class EventsQuery(StrictSerializer):
    """From where on."""

    after = StrictIntegerField(required=False, min_value=0, max_value=2**53, default=0)


class BeganField(serializers.Serializer[Any]):
    """After which record of which run a retry began."""

    run = serializers.UUIDField()
    record = serializers.IntegerField()


class RunRow(serializers.Serializer[Any]):
    """A run in a list. `retry_of` is null where it is no retry."""

    id = serializers.UUIDField()
    workflow = serializers.CharField()
    status = serializers.ChoiceField(choices=STATUSES)
    node = serializers.CharField()
    terminal_code = serializers.ChoiceField(choices=CODES, allow_null=True)
    scripted = serializers.BooleanField()
    retry_of = BeganField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class PinsField(serializers.Serializer[Any]):
    """What a run is pinned to, by digest."""

    manifest = serializers.CharField()
    pins = serializers.CharField()
    graph = serializers.CharField()
    goal = serializers.CharField()
    code_version = serializers.CharField()


class LeftField(serializers.Serializer[Any]):
    """What is left: tokens, calls, whole cents, milliseconds. Null: no limit."""

    tokens = serializers.IntegerField(allow_null=True)
    tool_calls = serializers.IntegerField(allow_null=True)
    cost_cents = serializers.IntegerField(allow_null=True)
    wall_clock_ms = serializers.IntegerField(allow_null=True)


class ProgressField(serializers.Serializer[Any]):
    """The envelope of the newest committed step (R-SESS-11). `progress_id` is a cursor into the events."""

    session_id = serializers.UUIDField()
    progress_id = serializers.IntegerField()
    emitted_at = serializers.DateTimeField()
    current_step = serializers.CharField()
    completed_step_count = serializers.IntegerField()
    total_step_count = serializers.IntegerField(allow_null=True)
    budget_remaining = LeftField()
    awaiting_gate = serializers.BooleanField()


class BoundsField(serializers.Serializer[Any]):
    """What remains of a dimension at the least and at the most; an upper bound that is null is unknown."""

    lower = serializers.CharField()
    upper = serializers.CharField(allow_null=True)


class RestingField(serializers.Serializer[Any]):
    """A fact that nobody vouches for, with the tool that read it."""

    fact = serializers.CharField()
    tool = serializers.CharField(allow_blank=True)


class ScopeField(serializers.Serializer[Any]):
    """What a task names by itself, what its boundary adds to that, and the policy that rules."""

    names = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), allow_null=True)
    granted = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    policy_version = serializers.IntegerField(allow_null=True)


class ReadinessField(serializers.Serializer[Any]):
    """Tools that a model was not offered, and those whose credential may end before the run, with why."""

    left_out = serializers.DictField(child=serializers.CharField())
    cautions = serializers.DictField(child=serializers.CharField())


class BusinessPartField(serializers.Serializer[Any]):
    """One kind of work in the business figure."""

    what = serializers.ChoiceField(
        choices=["charged", "token", "model_call", "tool_call", "api_call", "gpu_second", "human_review"]
    )
    amount = serializers.CharField()
    rate_usd = serializers.CharField()
    usd = serializers.CharField()


class BusinessField(serializers.Serializer[Any]):
    """What the run cost the house in US$: one figure for business use, which limits nothing. Parts that come
    to nothing are left out."""

    usd = serializers.CharField()
    parts = BusinessPartField(many=True)


class AwayField(serializers.Serializer[Any]):
    """A model that a run waits for: since when and until when at the latest (null: its deadline alone), why,
    and what ends the wait: a timer, the model's circuit, or its turn in the line in front of it."""

    profile = serializers.CharField()
    cause = serializers.CharField()
    by = serializers.ChoiceField(choices=["timer", "circuit", "line"])
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)


class RunField(RunRow):
    """A run as it stands. Amounts are decimal text by dimension; a limit that is null is none.

    `estimate` bounds what the rest of the run takes, by dimension; it is null once the run has ended.
    `plan` is the document of a planner, null where none was made: the steps of any run are under its link
    `plan`. `waiting_for_model` is null unless the run waits for one. `result` is null until the run has
    ended, `retried_as` where no run began after one of its records. `untrusted` are the facts behind the
    result that nobody vouches for; where there are any, `notice` says so.
    """

    task = serializers.UUIDField()
    retried_as = serializers.UUIDField(allow_null=True)
    workflow_version = serializers.IntegerField()
    mode = serializers.ChoiceField(choices=MODES)
    reason = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField()
    progress = ProgressField()
    usage = serializers.DictField(child=serializers.CharField())
    limits = serializers.DictField(child=serializers.CharField(allow_null=True))
    reserved = serializers.DictField(child=serializers.CharField())
    estimate = serializers.DictField(child=BoundsField(), allow_null=True)
    business = BusinessField()
    plan = serializers.DictField(child=serializers.JSONField(), allow_null=True)
    pins = PinsField()
    scope = ScopeField()
    tools = ReadinessField()
    waiting_for_model = AwayField(allow_null=True)
    result = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)
    untrusted = serializers.ListField(child=RestingField())
    notice = serializers.CharField(allow_blank=True)
    started_at = serializers.DateTimeField(allow_null=True)
    links = RunLinks()


class EventField(serializers.Serializer[Any]):
    """One event of a trace."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    phase = serializers.IntegerField()
    phase_name = serializers.CharField()
    kind = serializers.CharField()
    actor = serializers.CharField()
    payload = serializers.DictField(child=serializers.JSONField(allow_null=True))
    hash = serializers.CharField()


class ResultField(serializers.Serializer[Any]):
    """How a run ended, and the document it left: its result, or the report of how far it came."""

    status = serializers.ChoiceField(choices=STATUSES)
    terminal_code = serializers.ChoiceField(choices=CODES)
    reason = serializers.CharField(allow_blank=True)
    scripted = serializers.BooleanField()
    untrusted = serializers.ListField(child=RestingField())
    notice = serializers.CharField(allow_blank=True)
    output = serializers.JSONField(required=False, allow_null=True)
    partial = serializers.BooleanField(required=False)  # type: ignore[assignment]  # a field, as all here
    summary = serializers.CharField(required=False)
    finished = serializers.ListField(child=serializers.CharField(), required=False)
    open = serializers.ListField(child=serializers.CharField(), required=False)
    unverified = serializers.ListField(child=serializers.CharField(), required=False)


class ReplayField(serializers.Serializer[Any]):
    """What came of a replay."""

    matches = serializers.BooleanField()
    records = serializers.IntegerField()
    first_difference = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)
