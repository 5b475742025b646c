"""API routes of approvals."""

from django.urls import path

from approvals.api import assignment, bulk, edit_preview, requests, reveal, undo

urlpatterns = [
    path("approvals", requests.Approvals.as_view(), name="approvals"),
    path("approvals/decisions", bulk.BulkDecisions.as_view(), name="approvals-decisions"),
    path("approvals/undo-window", undo.UndoWindows.as_view(), name="approvals-undo-window"),
    path("approvals/<str:request_id>", requests.OneApproval.as_view(), name="approval"),
    path("approvals/<str:request_id>/decisions", requests.Decisions.as_view(), name="approval-decisions"),
    path(
        "approvals/<str:request_id>/edit-preview", edit_preview.EditPreview.as_view(), name="approval-preview"
    ),
    path("approvals/<str:request_id>/undo", undo.DecisionUndo.as_view(), name="approval-undo"),
    path("approvals/<str:request_id>/reveal", reveal.RevealedValue.as_view(), name="approval-reveal"),
    path(
        "approvals/<str:request_id>/assignment",
        assignment.RequestAssignment.as_view(),
        name="approval-assignment",
    ),
]
