"""Proposals to weaken a tool's safeguards that wait for a second administrator, in the API.

Spec: R-TOOL-4, P4.
"""

from typing import Any

from rest_framework import serializers

from orchestrator.api.serializers import format_timestamp
from orchestrator.tools.models.tool_proposal import KINDS, ToolProposal


class ToolProposalField(serializers.Serializer[Any]):
    """What was asked for. `weaker` says where it guards less, a sentence each. It is `outdated`, by nobody,
    once what it is about is another or gone."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=KINDS)
    tool = serializers.CharField()
    weaker = serializers.ListField(child=serializers.CharField())
    body = serializers.DictField(child=serializers.JSONField(allow_null=True))
    reason = serializers.CharField()
    by = serializers.UUIDField()
    at = serializers.DateTimeField()
    status = serializers.ChoiceField(choices=("open", "agreed", "refused", "withdrawn", "outdated"))
    settled_by = serializers.UUIDField(allow_null=True)
    settled_at = serializers.DateTimeField(allow_null=True)
    settled_reason = serializers.CharField(allow_blank=True)


def proposal_field(row: ToolProposal) -> dict[str, Any]:
    """Serialize a proposal for the API."""
    return {
        "id": row.id, "kind": row.kind, "tool": row.tool, "weaker": row.weaker, "body": row.body,
        "reason": row.reason, "by": row.by, "at": format_timestamp(row.at), "status": row.status,
        "settled_by": row.settled_by, "settled_at": format_timestamp(row.settled_at),
        "settled_reason": row.settled_reason,
    }  # fmt: skip
