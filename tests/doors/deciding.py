"""Every address that writes, by whether it decides, confirms or agrees to anything in another person's place
(R-APPR-23). One that is in neither list fails the walk."""

from collections.abc import Mapping

# By address: the walks of test_deciding_doors.py, test_deciding_people.py and test_relations.py through it.
DECIDING: Mapping[str, tuple[str, ...]] = {
    "post api/v1/approvals/{request_id}/decisions": (
        "api",
        "edit",
        "reconciliation",
        "extension",
        "question",
    ),
    "post api/v1/approvals/decisions": ("bulk api",),
    "post api/v1/approvals/{request_id}/handling": ("claim", "assignment"),
    "post api/v1/approvals/{request_id}/reveal": ("reveal",),
    "post api/v1/approvals/{request_id}/undo": ("undo",),
    "post api/v1/tool-proposals/{tool_proposal_id}/agree": ("tool proposal",),
    "post api/v1/policy/proposals/{proposal_id}/agree": ("policy",),
    "post api/v1/memory/{memory_id}/keep": ("memory",),
    "post api/v1/reviews/{review_id}/take": ("review taken",),
    "post api/v1/reviews/{review_id}/answer": ("review",),
    "post api/v1/members": ("own role",),
    "post api/v1/members/{person_id}/roles": ("own further role",),
    "put api/v1/members/{person_id}/roles/{role}": ("own limits",),
    "post api/v1/members/{person_id}/confirm": ("confirmation",),
    "post api/v1/keys/{key_id}/rotate": ("another's key",),
    "page approvals/<uuid:request_id>": ("page", "fragment", "edit page", "claim page", "reveal page"),
    "page approvals/together": ("bulk page",),
    "page tool-proposals": ("tool proposal page",),
    "page policy": ("policy page",),
    "page reviews/<uuid:review_id>": ("review page",),
    "page system/reviewed/<uuid:run_id>": ("safety page",),
    "page tenant/people/invite": ("own role page",),
    "page tenant/members/<uuid:member_id>/limits": ("own limits page",),
    "page tenant/people/<uuid:person_id>/confirm": ("confirmation page",),
    "page tenant/keys/<uuid:key_id>/rotate": ("another's key page",),
}

# What each of these does instead.
NOT_DECIDING: Mapping[str, tuple[str, ...]] = {
    "asks for work, or ends it": (
        "post api/v1/tasks", "post api/v1/runs/{run_id}/cancel", "post api/v1/runs/{run_id}/pause",
        "post api/v1/runs/{run_id}/resume", "post api/v1/runs/{run_id}/replay",
        "post api/v1/runs/{run_id}/retry", "page new/<slug:workflow>", "page runs/<uuid:run_id>/ask",
        "page runs/<uuid:run_id>/replayed", "page runs/<uuid:run_id>/retry", "page runs/bulk",
        "page runs/views", "page runs/views/<uuid:view_id>",
    ),
    "takes something back, refuses it or gives it away": (
        "post api/v1/reviews/{review_id}/release", "post api/v1/memory/{memory_id}/refuse",
        "post api/v1/memory/{memory_id}/quarantine", "post api/v1/tool-proposals/{tool_proposal_id}/drop",
        "post api/v1/policy/proposals/{proposal_id}/drop", "post api/v1/secrets/{secret}/revoke",
        "post api/v1/members/{person_id}/roles/{role}/remove", "post api/v1/members/{person_id}/deactivate",
        "post api/v1/keys/{key_id}/revoke", "page tenant/keys/<uuid:key_id>/revoke",
        "page tenant/members/<uuid:member_id>/remove", "page tenant/people/<uuid:person_id>/deactivate",
        "page tenant/sign-ins/<uuid:session_id>/end",
    ),
    "waits for a second administrator where it guards less": (
        "patch api/v1/tools/{name}", "post api/v1/tool-servers/{server}/admit", "post api/v1/http-tools",
        "put api/v1/private-places", "put api/v1/policy", "put api/v1/outside/web",
        "put api/v1/outside/databases", "put api/v1/outside/mail", "post api/v1/model-profiles",
        "patch api/v1/model-profiles/{model}", "post api/v1/model-profiles/{model}/remove",
        "put api/v1/ceilings", "post api/v1/boundaries", "post api/v1/boundaries/{slug}/tools",
        "page tools/<str:name>", "page tool-servers/<str:server>", "page tool-servers", "page http-tools",
        "page outside", "page models", "page policy/rule", "page budgets/ceilings",
        "page boundaries/_publish", "page boundaries/<str:slug>",
    ),
    "says how the tenant is set up, for everybody alike": (
        "post api/v1/workflows", "post api/v1/workflows/{slug}/versions/{number}/retire",
        "post api/v1/tool-servers", "post api/v1/tool-servers/{server}/look",
        "post api/v1/tool-servers/{server}/quarantine", "post api/v1/tool-servers/{server}/remove",
        "post api/v1/secrets", "post api/v1/corpora",
        "post api/v1/corpora/{corpus}/documents/{document}/remove",
        "post api/v1/circuits/{circuit_id}/reset", "put api/v1/webhook-log", "post api/v1/webhooks",
        "post api/v1/webhooks/{webhook_id}/rotate", "post api/v1/webhooks/{webhook_id}/on",
        "post api/v1/webhooks/{webhook_id}/test", "delete api/v1/webhooks/{webhook_id}",
        "post api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", "put api/v1/rates",
        "post api/v1/prices", "post api/v1/prices/corrections", "put api/v1/approvals/undo-window",
        "page corpora", "page corpora/<str:corpus>/<str:document>", "page budgets/prices",
        "page budgets/rates", "page policy/undo", "page system/circuits/<uuid:circuit_id>",
        "page system/lift/<uuid:stop_id>", "page system/stop", "page tenant/webhooks",
        "page tenant/webhooks/<uuid:webhook_id>", "page workflows/<str:slug>/<int:number>/retire",
        "page workflows/_publish",
    ),
    "makes a key or a link, which is on record as its maker's": (
        "post api/v1/keys", "post api/v1/members/{person_id}/link", "page tenant/keys",
        "page tenant/people/<uuid:person_id>/link",
    ),
    "concerns a person's own screen or sign-in": (
        "page preferences", "page tenant/switch", "page tenant/people/<uuid:person_id>/lift",
        "page approvals/<uuid:request_id>/preview",
    ),
}  # fmt: skip
