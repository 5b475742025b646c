"""Where the tenant's pages are. No trailing slashes."""

from django.urls import path

from tenancy.views import audit, keys, people, sign_ins

urlpatterns = [
    path("tenant/people", people.people, name="people"),
    path("tenant/people/invite", people.invite, name="people-invite"),
    path("tenant/people/<uuid:person_id>/link", people.link, name="people-link"),
    path("tenant/people/<uuid:person_id>/confirm", people.confirm, name="people-confirm"),
    path("tenant/people/<uuid:person_id>/deactivate", people.deactivate, name="people-deactivate"),
    path("tenant/members/<uuid:member_id>/limits", people.limits, name="member-limits"),
    path("tenant/members/<uuid:member_id>/remove", people.remove, name="member-remove"),
    path("tenant/keys", keys.keys, name="keys"),
    path("tenant/keys/<uuid:key_id>/rotate", keys.rotate, name="key-rotate"),
    path("tenant/keys/<uuid:key_id>/revoke", keys.revoke, name="key-revoke"),
    path("tenant/sign-ins", sign_ins.sign_ins, name="sign-ins"),
    path("tenant/sign-ins/<uuid:session_id>/end", sign_ins.end, name="tenant-session-end"),
    path("tenant/people/<uuid:person_id>/lift", sign_ins.lift, name="sign-in-lift"),
    path("tenant/audit", audit.audit, name="audit"),
]
