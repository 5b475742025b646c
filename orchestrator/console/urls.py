"""URLs of the orchestrator's pages, without trailing slashes."""

from django.urls import path

from orchestrator.console.views import dashboard, run, runs, saved_views, system_status
from orchestrator.decisions.views import in_doubt_changes, queues
from orchestrator.knowledge.views import corpora, files
from orchestrator.llm import views as model_profiles
from orchestrator.notifications import views as webhooks
from orchestrator.policies.views import boundaries, policies
from orchestrator.publishing import views as workflows
from orchestrator.reviews import views as reviews
from orchestrator.runs.views import run_retry, task_form
from orchestrator.spending.views import ceilings, prices
from orchestrator.tenants.views import platform, sign_in_rules
from orchestrator.tools.views import change_requests, destinations, http_tools, tool_servers, tools

urlpatterns = [
    path("", dashboard.show_dashboard_page, name="overview"),
    path("runs", runs.show_runs_page, name="runs"),
    path("runs/bulk", runs.submit_bulk_run_action, name="runs-bulk"),
    path("runs/views", saved_views.saved_views, name="runs-views"),
    path("runs/views/<uuid:view_id>", saved_views.saved_view, name="runs-view"),
    path("runs/<uuid:run_id>", run.show_run_page, name="run"),
    path("runs/<uuid:run_id>/ask", run.show_run_action_page, name="run-ask"),
    path("runs/<uuid:run_id>/retry", run_retry.show_retry_page, name="run-retry"),
    path("runs/<uuid:run_id>/effects", in_doubt_changes.show_in_doubt_changes_page, name="run-effects"),
    path("runs/<uuid:run_id>/replayed", run.show_replay_page, name="run-replayed"),
    path("runs/<uuid:run_id>/file", files.download_workspace_file, name="run-content"),
    path("runs/<uuid:run_id>/files.zip", files.download_workspace_archive, name="run-contents"),
    path("runs/<uuid:run_id>/trace.jsonl", run.download_trace_file, name="run-file"),
    path("runs/<uuid:run_id>/rows/<int:seq>", run.show_timeline_row, name="run-row"),
    path("tools", tools.show_tools_page, name="tools"),
    path("tools/<str:name>", tools.show_tool_page, name="tool"),
    path("reviews", reviews.show_reviews_page, name="reviews"),
    path("reviews/<uuid:review_id>", reviews.show_review_page, name="review"),
    path("policy", policies.show_policy_page, name="policy"),
    path("tool-proposals", change_requests.show_change_requests_page, name="tool-proposals"),
    path("policy/rule", policies.show_rule_page, name="policy-rule"),
    path("http-tools", http_tools.http_tools, name="http-tools-page"),
    path("outside", destinations.show_destinations_page, name="outside"),
    path("models", model_profiles.show_models_page, name="models"),
    path("corpora", corpora.show_corpora_page, name="corpora-page"),
    path("corpora/<str:corpus>", corpora.show_corpus_page, name="corpus-page"),
    path("corpora/<str:corpus>/<str:document>", corpora.show_document_page, name="corpus-document"),
    path("tenant/queues", queues.show_queues_page, name="queues"),
    path("tenant/queues/<uuid:queue_id>", queues.update_queue, name="queue"),
    path("tool-servers", tool_servers.show_tool_servers_page, name="servers"),
    path("tool-servers/<str:server>", tool_servers.show_tool_server_page, name="server"),
    path("workflows", workflows.show_workflows_page, name="workflows"),
    path("workflows/_publish", workflows.show_publish_workflow_page, name="workflow-publish"),
    path("workflows/<str:slug>", workflows.show_workflow_page, name="workflow"),
    path(
        "workflows/<str:slug>/<int:number>/retire",
        workflows.submit_workflow_retirement,
        name="workflow-retire",
    ),
    path("boundaries", boundaries.show_boundaries_page, name="boundaries"),
    path("boundaries/_publish", boundaries.show_publish_boundary_page, name="boundary-publish"),
    path("boundaries/<str:slug>", boundaries.show_boundary_page, name="boundary"),
    path(
        "boundaries/<str:slug>/<int:number>/retire",
        boundaries.submit_boundary_retirement,
        name="boundary-retire",
    ),
    path("budgets/ceilings", ceilings.update_ceilings, name="budgets-ceilings"),
    path("budgets/prices", prices.show_prices_page, name="budgets-prices"),
    path("system", system_status.show_system_page, name="system"),
    path("system/stop", system_status.submit_emergency_stop, name="system-stop"),
    path("system/lift/<uuid:stop_id>", system_status.submit_stop_lift, name="system-lift"),
    path("system/circuits", system_status.show_circuits_table, name="system-circuits"),
    path("system/circuits/<uuid:circuit_id>", system_status.show_circuit_page, name="system-circuit"),
    path("system/reviewed/<uuid:run_id>", system_status.submit_safety_review, name="system-reviewed"),
    path("tenant/webhooks", webhooks.show_webhooks_page, name="webhooks"),
    path("tenant/webhooks/<uuid:webhook_id>", webhooks.show_webhook_page, name="webhook"),
    path("tenant/sign-in-rules", sign_in_rules.sign_in_rules, name="sign-in-rules"),
    path("new", task_form.show_new_task_page, name="submit"),
    path("new/<slug:workflow>", task_form.show_task_form_page, name="submit-workflow"),
    path("platform/tenants", platform.show_tenants_page, name="platform-tenants"),
    path("platform/tenants/<str:tenant_slug>", platform.one_tenant, name="platform-tenant"),
    path(
        "platform/tenants/<str:tenant_slug>/suspend",
        platform.show_suspend_tenant_page,
        name="platform-suspend",
    ),
    path(
        "platform/tenants/<str:tenant_slug>/resume", platform.resume_suspended_tenant, name="platform-resume"
    ),
    path(
        "platform/tenants/<str:tenant_slug>/administrator",
        platform.submit_administrator_invitation,
        name="platform-administrator",
    ),
    path("platform/log", platform.show_platform_log_page, name="platform-log"),
]
