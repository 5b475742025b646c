"""The URL patterns of the inbox's pages."""

from django.urls import path

from approvals.views import bulk, decision, inbox, undo

urlpatterns = [
    path("approvals", inbox.show_inbox_page, name="approvals"),
    path("policy/undo", undo.undo_window, name="undo-window"),
    path("approvals/together", bulk.side_by_side, name="approvals-together"),
    path("approvals/<uuid:request_id>", decision.show_approval_page, name="approval"),
    path("approvals/<uuid:request_id>/preview", decision.show_edit_preview, name="approval-preview"),
]
