"""Where the inbox's doors are."""

from django.urls import path

from approvals.api import handling, previewing, requests, revealing, together, undoing

urlpatterns = [
    path("approvals", requests.Approvals.as_view(), name="approvals"),
    path("approvals/decisions", together.DecisionsTogether.as_view(), name="approvals-decisions"),
    path("approvals/undo-window", undoing.UndoWindows.as_view(), name="approvals-undo-window"),
    path("approvals/<str:request_id>", requests.OneApproval.as_view(), name="approval"),
    path("approvals/<str:request_id>/decisions", requests.Decisions.as_view(), name="approval-decisions"),
    path(
        "approvals/<str:request_id>/edit-preview", previewing.EditPreview.as_view(), name="approval-preview"
    ),
    path("approvals/<str:request_id>/undo", undoing.Undoing.as_view(), name="approval-undo"),
    path("approvals/<str:request_id>/reveal", revealing.Revealing.as_view(), name="approval-reveal"),
    path("approvals/<str:request_id>/handling", handling.Handlings.as_view(), name="approval-handling"),
]
