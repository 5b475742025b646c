"""Where the inbox's pages are."""

from django.urls import path

from approvals.views import deciding, handling, inbox

urlpatterns = [
    path("approvals", inbox.inbox, name="approvals"),
    path("approvals/<uuid:request_id>", deciding.approval, name="approval"),
    path("approvals/<uuid:request_id>/preview", deciding.preview, name="approval-preview"),
    path("approvals/<uuid:request_id>/handle", handling.handle_here, name="approval-handle"),
]
