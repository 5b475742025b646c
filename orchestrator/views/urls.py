"""Where the orchestrator's pages are. No trailing slashes."""

from django.urls import path

from orchestrator.views import (
    overview,
    policies,
    prices,
    run,
    runs,
    servers,
    submit,
    system,
    tools,
    webhooks,
    workflows,
)

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("runs", runs.runs, name="runs"),
    path("runs/bulk", runs.bulk, name="runs-bulk"),
    path("runs/<uuid:run_id>", run.run, name="run"),
    path("runs/<uuid:run_id>/ask", run.ask, name="run-ask"),
    path("runs/<uuid:run_id>/replayed", run.replayed, name="run-replayed"),
    path("runs/<uuid:run_id>/trace.jsonl", run.file, name="run-file"),
    path("runs/<uuid:run_id>/rows/<int:seq>", run.row, name="run-row"),
    path("tools", tools.tools, name="tools"),
    path("tools/<str:name>", tools.tool, name="tool"),
    path("policy", policies.policy, name="policy"),
    path("policy/rule", policies.rule, name="policy-rule"),
    path("tool-servers", servers.servers, name="servers"),
    path("tool-servers/<str:server>", servers.server, name="server"),
    path("workflows", workflows.workflows, name="workflows"),
    path("workflows/_publish", workflows.publish, name="workflow-publish"),
    path("workflows/<str:slug>", workflows.workflow, name="workflow"),
    path("workflows/<str:slug>/<int:number>/retire", workflows.retire, name="workflow-retire"),
    path("budgets/prices", prices.prices, name="budgets-prices"),
    path("system", system.system, name="system"),
    path("system/stop", system.stop, name="system-stop"),
    path("system/lift/<uuid:stop_id>", system.lift, name="system-lift"),
    path("system/circuits", system.circuits, name="system-circuits"),
    path("system/circuits/<uuid:circuit_id>", system.circuit, name="system-circuit"),
    path("system/reviewed/<uuid:run_id>", system.reviewed, name="system-reviewed"),
    path("tenant/webhooks", webhooks.webhooks, name="webhooks"),
    path("tenant/webhooks/<uuid:webhook_id>", webhooks.webhook, name="webhook"),
    path("new", submit.choose, name="submit"),
    path("new/<slug:workflow>", submit.submit, name="submit-workflow"),
]
