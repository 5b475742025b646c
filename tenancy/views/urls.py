"""URL paths of the tenant's pages. No trailing slashes."""

from django.urls import path

from tenancy.views import audit, keys, people, sign_ins

urlpatterns = [
    path("tenant/people", people.show_people_page, name="people"),
    path("tenant/people/invite", people.submit_invitation, name="people-invite"),
    path("tenant/people/<uuid:person_id>/link", people.submit_password_link, name="people-link"),
    path("tenant/people/<uuid:person_id>/confirm", people.submit_person_confirmation, name="people-confirm"),
    path(
        "tenant/people/<uuid:person_id>/deactivate",
        people.submit_person_deactivation,
        name="people-deactivate",
    ),
    path("tenant/members/<uuid:member_id>/limits", people.update_member_limits, name="member-limits"),
    path("tenant/members/<uuid:member_id>/remove", people.submit_role_removal, name="member-remove"),
    path("tenant/keys", keys.show_keys_page, name="keys"),
    path("tenant/keys/<uuid:key_id>/rotate", keys.submit_key_rotation, name="key-rotate"),
    path("tenant/keys/<uuid:key_id>/revoke", keys.submit_key_revocation, name="key-revoke"),
    path("tenant/sign-ins", sign_ins.sign_ins, name="sign-ins"),
    path("tenant/sign-ins/<uuid:session_id>/end", sign_ins.end_member_session, name="tenant-session-end"),
    path("tenant/people/<uuid:person_id>/lift", sign_ins.lift_sign_in_limits, name="sign-in-lift"),
    path("tenant/audit", audit.show_audit_page, name="audit"),
]
