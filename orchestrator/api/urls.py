"""The URL patterns of the orchestrator's API, without trailing slashes (R-API-1)."""

from django.urls import path

from orchestrator.api import run_retry, runs, stream, tasks
from orchestrator.decisions.api import in_doubt_changes, queues
from orchestrator.knowledge.api import files, memory
from orchestrator.llm import api as model_profiles
from orchestrator.notifications.api import webhook_retention, webhooks
from orchestrator.outbound import api as circuit_breakers
from orchestrator.policies.api import boundaries, policies
from orchestrator.publishing.api import catalog
from orchestrator.reviews import api as reviews
from orchestrator.spending.api import ceilings, prices
from orchestrator.tenants.api import sign_in_rules, tenants
from orchestrator.tools.api import destinations, relaxation_proposals, tool_servers

urlpatterns = [
    path("tasks", tasks.Tasks.as_view(), name="tasks"),
    path("tenants", tenants.Tenants.as_view(), name="tenants"),
    path("tenants/<str:tenant_slug>", tenants.OneTenant.as_view(), name="tenant"),
    path("tenants/<str:tenant_slug>/suspend", tenants.SuspendTenant.as_view(), name="tenant-suspend"),
    path("tenants/<str:tenant_slug>/resume", tenants.ResumeTenant.as_view(), name="tenant-resume"),
    path(
        "tenants/<str:tenant_slug>/administrator",
        tenants.InviteAdministrator.as_view(),
        name="tenant-administrator",
    ),
    path("runs", runs.Runs.as_view(), name="runs"),
    path("runs/<str:run_id>", runs.OneRun.as_view(), name="run"),
    path("runs/<str:run_id>/cancel", runs.Cancel.as_view(), name="run-cancel"),
    path("runs/<str:run_id>/pause", runs.Pause.as_view(), name="run-pause"),
    path("runs/<str:run_id>/resume", runs.Resume.as_view(), name="run-resume"),
    path("runs/<str:run_id>/events", runs.Events.as_view(), name="run-events"),
    path("runs/<str:run_id>/result", runs.Result.as_view(), name="run-result"),
    path("runs/<str:run_id>/plan", runs.ThePlan.as_view(), name="run-plan"),
    path("runs/<str:run_id>/trace", runs.Trace.as_view(), name="run-trace"),
    path("runs/<str:run_id>/files", files.Files.as_view(), name="run-files"),
    path("runs/<str:run_id>/files/content/<path:file>", files.FileContent.as_view(), name="run-file-content"),
    path("runs/<str:run_id>/files/archive", files.Archive.as_view(), name="run-files-archive"),
    path("runs/<str:run_id>/files/diff", files.Diff.as_view(), name="run-files-diff"),
    path("runs/<str:run_id>/stream", stream.Stream.as_view(), name="run-stream"),
    path("runs/<str:run_id>/replay", runs.Replay.as_view(), name="run-replay"),
    path("runs/<str:run_id>/checkpoints", run_retry.Checkpoints.as_view(), name="run-checkpoints"),
    path("runs/<str:run_id>/retry", run_retry.RetryRun.as_view(), name="run-retry-api"),
    path("runs/<str:run_id>/effects", in_doubt_changes.Effects.as_view(), name="run-effects-api"),
    path(
        "runs/<str:run_id>/effects/reconcile",
        in_doubt_changes.Reconcile.as_view(),
        name="run-effects-reconcile",
    ),
    path("runs/<str:run_id>/effects/look-up", in_doubt_changes.LookUp.as_view(), name="run-effects-look-up"),
    path("workflows", catalog.Workflows.as_view(), name="workflows"),
    path("workflows/<str:slug>", catalog.OneWorkflow.as_view(), name="workflow"),
    path("workflows/<str:slug>/versions", catalog.Versions.as_view(), name="workflow-versions"),
    path(
        "workflows/<str:slug>/versions/<str:number>/retire",
        catalog.Retire.as_view(),
        name="workflow-retire",
    ),
    path("boundaries", boundaries.Boundaries.as_view(), name="boundaries-api"),
    path("boundaries/<str:slug>", boundaries.OneBoundary.as_view(), name="boundary-api"),
    path(
        "boundaries/<str:slug>/versions", boundaries.BoundaryVersions.as_view(), name="boundary-api-versions"
    ),
    path(
        "boundaries/<str:slug>/versions/<str:number>/retire",
        boundaries.RetireBoundary.as_view(),
        name="boundary-api-retire",
    ),
    path("boundaries/<str:slug>/tools", boundaries.AllowTool.as_view(), name="boundary-api-tools"),
    path("tools", catalog.Tools.as_view(), name="tools"),
    path("tools/<str:name>", catalog.OneTool.as_view(), name="tool"),
    path("tool-servers", tool_servers.ToolServers.as_view(), name="tool-servers"),
    path("tool-servers/<str:server>", tool_servers.OneToolServer.as_view(), name="tool-server"),
    path("tool-servers/<str:server>/look", tool_servers.Look.as_view(), name="tool-server-look"),
    path("tool-servers/<str:server>/admit", tool_servers.Admit.as_view(), name="tool-server-admit"),
    path(
        "tool-servers/<str:server>/quarantine",
        tool_servers.QuarantineTool.as_view(),
        name="tool-server-quarantine",
    ),
    path(
        "tool-servers/<str:server>/remove", tool_servers.RemoveToolServer.as_view(), name="tool-server-remove"
    ),
    path("http-tools", tool_servers.HttpTools.as_view(), name="http-tools"),
    path("private-places", tool_servers.PrivatePlacesDoor.as_view(), name="private-places"),
    path("ceilings", ceilings.TenantCeilings.as_view(), name="ceilings"),
    path("sign-in-rules", sign_in_rules.SignInRulesDoor.as_view(), name="sign-in-rules-api"),
    path("tool-proposals", relaxation_proposals.ToolProposals.as_view(), name="tool-proposals-api"),
    path(
        "tool-proposals/<str:tool_proposal_id>/agree",
        relaxation_proposals.AgreeToTool.as_view(),
        name="tool-proposals-api-agree",
    ),
    path(
        "tool-proposals/<str:tool_proposal_id>/drop",
        relaxation_proposals.DropToolProposal.as_view(),
        name="tool-proposals-api-drop",
    ),
    path("policy", policies.PolicyDoor.as_view(), name="policy-api"),
    path("policy/versions", policies.PolicyVersions.as_view(), name="policy-api-versions"),
    path(
        "policy/proposals/<str:proposal_id>/agree", policies.AgreeToPolicy.as_view(), name="policy-api-agree"
    ),
    path("policy/proposals/<str:proposal_id>/drop", policies.DropPolicy.as_view(), name="policy-api-drop"),
    path("secrets", tool_servers.Secrets.as_view(), name="secrets"),
    path("secrets/<str:secret>/revoke", tool_servers.RevokeSecret.as_view(), name="secret-revoke"),
    path("outside/web", destinations.Web.as_view(), name="outside-web"),
    path("outside/databases", destinations.DatabasesDoor.as_view(), name="outside-databases"),
    path("outside/mail", destinations.Mail.as_view(), name="outside-mail"),
    path("model-profiles", model_profiles.ModelProfiles.as_view(), name="model-profiles"),
    path(
        "model-profiles/<str:model>/remove", model_profiles.RemoveModelProfile.as_view(), name="model-remove"
    ),
    path("model-profiles/<str:model>", model_profiles.OneModelProfile.as_view(), name="model-profile"),
    path("corpora", destinations.Corpora.as_view(), name="corpora"),
    path("corpora/<str:corpus>", destinations.OneCorpus.as_view(), name="corpus"),
    path(
        "corpora/<str:corpus>/documents/<str:document>", destinations.OneDocument.as_view(), name="document"
    ),
    path(
        "corpora/<str:corpus>/documents/<str:document>/remove",
        destinations.RemoveDocument.as_view(),
        name="document-remove",
    ),
    path("queues", queues.Queues.as_view(), name="queues-api"),
    path("queues/<str:queue>", queues.OneQueue.as_view(), name="queue-api"),
    path("queues/<str:queue>/close", queues.CloseQueue.as_view(), name="queue-api-close"),
    path("queues/<str:queue>/reopen", queues.ReopenQueue.as_view(), name="queue-api-reopen"),
    path("reviews", reviews.Reviews.as_view(), name="review-items"),
    path("reviews/<str:review_id>", reviews.ReviewOne.as_view(), name="review-item"),
    path("reviews/<str:review_id>/take", reviews.Take.as_view(), name="review-take"),
    path("reviews/<str:review_id>/release", reviews.Release.as_view(), name="review-release"),
    path("reviews/<str:review_id>/answer", reviews.AnswerOne.as_view(), name="review-answer"),
    path("memory", memory.Memory.as_view(), name="memory"),
    path("memory/<str:memory_id>/keep", memory.Keep.as_view(), name="memory-keep"),
    path("memory/<str:memory_id>/refuse", memory.Refuse.as_view(), name="memory-refuse"),
    path("memory/<str:memory_id>/quarantine", memory.Quarantine.as_view(), name="memory-quarantine"),
    path("prices", prices.Prices.as_view(), name="prices"),
    path("prices/corrections", prices.Corrections.as_view(), name="price-corrections"),
    path("circuits", circuit_breakers.Circuits.as_view(), name="circuits"),
    path("circuits/<str:circuit_id>/reset", circuit_breakers.Reset.as_view(), name="circuit-reset"),
    path("webhook-log", webhook_retention.WebhookLog.as_view(), name="webhook-log-api"),
    path("webhooks", webhooks.Webhooks.as_view(), name="webhooks-api"),
    path("webhooks/<str:webhook_id>", webhooks.OneWebhook.as_view(), name="webhook-api"),
    path("webhooks/<str:webhook_id>/rotate", webhooks.Rotate.as_view(), name="webhook-api-rotate"),
    path("webhooks/<str:webhook_id>/on", webhooks.TurnOn.as_view(), name="webhook-api-on"),
    path("webhooks/<str:webhook_id>/test", webhooks.Try.as_view(), name="webhook-api-test"),
    path("webhooks/<str:webhook_id>/deliveries", webhooks.Deliveries.as_view(), name="webhook-api-log"),
    path(
        "webhooks/<str:webhook_id>/deliveries/<str:delivery_id>",
        webhooks.OneDelivery.as_view(),
        name="webhook-api-delivery",
    ),
    path(
        "webhooks/<str:webhook_id>/deliveries/<str:delivery_id>/replay",
        webhooks.ReplayDelivery.as_view(),
        name="webhook-api-replay",
    ),
]
