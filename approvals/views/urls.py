"""Where the inbox's pages are."""

from django.urls import path

from approvals.views import deciding, inbox, together, undo_window

urlpatterns = [
    path("approvals", inbox.inbox, name="approvals"),
    path("policy/undo", undo_window.undo_window, name="undo-window"),
    path("approvals/together", together.side_by_side, name="approvals-together"),
    path("approvals/<uuid:request_id>", deciding.approval, name="approval"),
    path("approvals/<uuid:request_id>/preview", deciding.preview, name="approval-preview"),
]
