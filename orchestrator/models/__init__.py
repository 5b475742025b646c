"""The tables of the orchestrator. Runs are written by their lease holder alone; everybody else leaves a
signal."""

from orchestrator.models.circuit_breaker import CircuitRow
from orchestrator.models.destinations import CorpusDocument, CorpusPassage, MailDraft, Outside
from orchestrator.models.emergency_stop import EmergencyStop
from orchestrator.models.memory import MemoryProposal, MemoryVerdict
from orchestrator.models.model_queue import ModelServed, ModelTurn
from orchestrator.models.policy import PolicyProposal, PolicyVersion
from orchestrator.models.published_versions import (
    BoundaryVersion,
    PinSet,
    PromptVersion,
    RegistryVersion,
    ToolVersion,
    WorkflowVersion,
)
from orchestrator.models.resource_lock import ConflictClaim
from orchestrator.models.review import ReviewItem, ReviewWord
from orchestrator.models.run import Dispatch, Intent, ManifestRow, Run, RunSignal, SignalReceipt
from orchestrator.models.saved_view import SavedView
from orchestrator.models.task import Task
from orchestrator.models.tool_proposal import ToolProposal
from orchestrator.models.tool_server import PrivatePlaces, ServerTool, ToolDefinition, ToolServer
from orchestrator.models.usage_estimate import Expectation
from orchestrator.models.workspace import FileContent, WorkspaceRevision

__all__ = [
    "BoundaryVersion",
    "CircuitRow",
    "ConflictClaim",
    "CorpusDocument",
    "CorpusPassage",
    "Dispatch",
    "EmergencyStop",
    "Expectation",
    "FileContent",
    "Intent",
    "MailDraft",
    "ManifestRow",
    "MemoryProposal",
    "MemoryVerdict",
    "ModelServed",
    "ModelTurn",
    "Outside",
    "PinSet",
    "PolicyProposal",
    "PolicyVersion",
    "PrivatePlaces",
    "PromptVersion",
    "RegistryVersion",
    "ReviewItem",
    "ReviewWord",
    "Run",
    "RunSignal",
    "SavedView",
    "ServerTool",
    "SignalReceipt",
    "Task",
    "ToolDefinition",
    "ToolProposal",
    "ToolServer",
    "ToolVersion",
    "WorkflowVersion",
    "WorkspaceRevision",
]
