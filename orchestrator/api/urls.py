"""Where the orchestrator's doors are. No trailing slashes (R-API-1)."""

from django.urls import path

from orchestrator.api import catalogue, circuits, prices, runs, servers, stream, tasks, webhooks

urlpatterns = [
    path("tasks", tasks.Tasks.as_view(), name="tasks"),
    path("runs", runs.Runs.as_view(), name="runs"),
    path("runs/<str:run_id>", runs.OneRun.as_view(), name="run"),
    path("runs/<str:run_id>/cancel", runs.Cancel.as_view(), name="run-cancel"),
    path("runs/<str:run_id>/pause", runs.Pause.as_view(), name="run-pause"),
    path("runs/<str:run_id>/resume", runs.Resume.as_view(), name="run-resume"),
    path("runs/<str:run_id>/events", runs.Events.as_view(), name="run-events"),
    path("runs/<str:run_id>/result", runs.Result.as_view(), name="run-result"),
    path("runs/<str:run_id>/trace", runs.Trace.as_view(), name="run-trace"),
    path("runs/<str:run_id>/stream", stream.Stream.as_view(), name="run-stream"),
    path("runs/<str:run_id>/replay", runs.Replay.as_view(), name="run-replay"),
    path("workflows", catalogue.Workflows.as_view(), name="workflows"),
    path("workflows/<str:slug>", catalogue.OneWorkflow.as_view(), name="workflow"),
    path("workflows/<str:slug>/versions", catalogue.Versions.as_view(), name="workflow-versions"),
    path(
        "workflows/<str:slug>/versions/<str:number>/retire",
        catalogue.Retire.as_view(),
        name="workflow-retire",
    ),
    path("tools", catalogue.Tools.as_view(), name="tools"),
    path("tools/<str:name>", catalogue.OneTool.as_view(), name="tool"),
    path("tool-servers", servers.ToolServers.as_view(), name="tool-servers"),
    path("tool-servers/<str:server>", servers.OneToolServer.as_view(), name="tool-server"),
    path("tool-servers/<str:server>/look", servers.Look.as_view(), name="tool-server-look"),
    path("tool-servers/<str:server>/admit", servers.Admit.as_view(), name="tool-server-admit"),
    path(
        "tool-servers/<str:server>/quarantine",
        servers.QuarantineTool.as_view(),
        name="tool-server-quarantine",
    ),
    path("tool-servers/<str:server>/remove", servers.RemoveToolServer.as_view(), name="tool-server-remove"),
    path("http-tools", servers.HttpTools.as_view(), name="http-tools"),
    path("private-places", servers.PrivatePlacesDoor.as_view(), name="private-places"),
    path("secrets", servers.Secrets.as_view(), name="secrets"),
    path("prices", prices.Prices.as_view(), name="prices"),
    path("prices/corrections", prices.Corrections.as_view(), name="price-corrections"),
    path("circuits", circuits.Circuits.as_view(), name="circuits"),
    path("circuits/<str:circuit_id>/reset", circuits.Reset.as_view(), name="circuit-reset"),
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
