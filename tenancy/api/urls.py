"""URL paths of the tenant API. No trailing slashes (R-API-1)."""

from django.urls import path

from tenancy.api import keys, members

urlpatterns = [
    path("members", members.Members.as_view(), name="members-api"),
    path("members/<str:person_id>", members.OneMember.as_view(), name="member-api"),
    path("members/<str:person_id>/link", members.MemberLink.as_view(), name="member-api-link"),
    path("members/<str:person_id>/confirm", members.ConfirmMember.as_view(), name="member-api-confirm"),
    path(
        "members/<str:person_id>/deactivate", members.DeactivateMember.as_view(), name="member-api-deactivate"
    ),
    path("members/<str:person_id>/roles", members.MemberRoles.as_view(), name="member-api-roles"),
    path("members/<str:person_id>/roles/<str:role>", members.OneRole.as_view(), name="member-api-role"),
    path(
        "members/<str:person_id>/roles/<str:role>/remove", members.RemoveRole.as_view(),
        name="member-api-role-remove",
    ),
    path("keys", keys.Keys.as_view(), name="keys-api"),
    path("keys/<str:key_id>", keys.OneKey.as_view(), name="key-api"),
    path("keys/<str:key_id>/rotate", keys.RotateKey.as_view(), name="key-api-rotate"),
    path("keys/<str:key_id>/revoke", keys.RevokeKey.as_view(), name="key-api-revoke"),
]  # fmt: skip
