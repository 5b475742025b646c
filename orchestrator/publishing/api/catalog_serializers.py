"""The request and response bodies of workflows and tools."""

from typing import Any

from rest_framework import serializers

from orchestrator.core.domain.tool_spec import Risk
from orchestrator.workflow_yaml import LONGEST
from tenancy.core.roles import Scope
from tenancy.rest.serializer_fields import (
    Amount,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)

RISKS = [risk.value for risk in Risk]
POLICIES = ["by_risk", "always", "never"]


class WorkflowRow(serializers.Serializer[Any]):
    """A version of a workflow."""

    slug = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField(allow_blank=True)
    tier = serializers.IntegerField()
    digest = serializers.CharField()
    published_at = serializers.DateTimeField()


class VersionRow(WorkflowRow):
    """A version of a workflow, and since when it is out of choice."""

    retired_at = serializers.DateTimeField(allow_null=True)


class WorkflowField(WorkflowRow):
    """A workflow with the document it was compiled from."""

    document = serializers.DictField(child=serializers.JSONField(allow_null=True))


class WorkflowBody(StrictSerializer):
    """A workflow: its document, or the document's source text in YAML, whose faults then name lines."""

    one_of = (("document",), ("yaml",))

    document = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    yaml = StrictCharField(max_length=LONGEST, required=False, trim_whitespace=False)
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class LimitsField(serializers.Serializer[Any]):
    """A tool's limits: milliseconds a call, attempts after the first, calls a minute and run, characters of a
    result."""

    timeout_ms = serializers.IntegerField()
    max_retries = serializers.IntegerField()
    rate_per_minute = serializers.IntegerField()
    max_result_chars = serializers.IntegerField()


class LimitsBody(StrictSerializer):
    """Limits to set; what is left out stays."""

    timeout_ms = StrictIntegerField(required=False, min_value=1, max_value=600_000)
    max_retries = StrictIntegerField(required=False, min_value=0, max_value=10)
    rate_per_minute = StrictIntegerField(required=False, min_value=1, max_value=100_000)
    max_result_chars = StrictIntegerField(required=False, min_value=100, max_value=1_000_000)


class ToolRow(serializers.Serializer[Any]):
    """A tool as it stands. `enabled`: runs admitted now have it; `stopped`: it takes no call at all.
    `price_usd` null: what a call costs is not known."""

    name = serializers.CharField()
    version = serializers.IntegerField()
    description = serializers.CharField()
    risk_class = serializers.ChoiceField(choices=RISKS)
    reversibility = serializers.CharField()
    approval_policy = serializers.ChoiceField(choices=POLICIES)
    needs_approval = serializers.BooleanField()
    enabled = serializers.BooleanField()
    stopped = serializers.BooleanField()
    scopes = serializers.ListField(child=serializers.CharField())
    price_usd = serializers.CharField(allow_null=True)
    limits = LimitsField()
    input_schema = serializers.DictField(child=serializers.JSONField(allow_null=True))
    output_schema = serializers.DictField(child=serializers.JSONField(allow_null=True))


class ToolField(ToolRow):
    """A tool with everything its newest version declares."""

    definition = serializers.DictField(child=serializers.JSONField(allow_null=True))


class ToolBody(StrictSerializer):
    """What to change of a tool; what is left out stays."""

    risk_class = serializers.ChoiceField(choices=RISKS, required=False)
    approval_policy = serializers.ChoiceField(choices=POLICIES, required=False)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in Scope]), required=False, max_length=5
    )
    price_usd = Amount(required=False, max_value=10_000)
    limits = LimitsBody(required=False)
    enabled = StrictBooleanField(required=False)
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")
