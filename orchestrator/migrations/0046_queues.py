"""What a run puts before people stands in a queue of its tenant, and so does whatever a version names
(R-SEC-11, R-APPR-5)."""

from django.db import migrations
from tenancy.db.queue_guards import keep_named, queue_key

# Every version, older ones too: runs under way are pinned to them.
BODY = "convert_from(v.body, 'UTF8')::jsonb"
NAMED = {
    "orchestrator_reviewitem": "SELECT tenant_id, queue FROM orchestrator_reviewitem",
    "orchestrator_toolversion": (
        f"SELECT v.tenant_id, coalesce({BODY} ->> 'queue', 'operations') FROM orchestrator_toolversion v"
    ),
    "orchestrator_boundaryversion": (
        "SELECT v.tenant_id, route.value FROM orchestrator_boundaryversion v,"
        f" jsonb_each_text(coalesce({BODY} -> 'escalation_routes', '{{}}')) route"
    ),
    "orchestrator_workflowversion": f"""
        SELECT v.tenant_id, CASE
          WHEN node ->> 'kind' = 'approval' THEN nullif(node #>> '{{config,queue}}', '')
          WHEN node ->> 'kind' = 'tool' AND node #>> '{{config,tool}}' = 'review.request'
           AND node #>> '{{config,arguments,queue,from}}' = 'constant'
          THEN node #>> '{{config,arguments,queue,value}}' END
          FROM orchestrator_workflowversion v, jsonb_array_elements(coalesce({BODY} -> 'nodes', '[]')) node""",
    "orchestrator_toolproposal": """
        SELECT p.tenant_id, found #>> '{}' FROM orchestrator_toolproposal p,
          jsonb_path_query(p.body, '$.**.queue ? (@.type() == "string" && @ != "")') found
         WHERE p.status = 'open'
        UNION SELECT p.tenant_id, route.value FROM orchestrator_toolproposal p,
          jsonb_each_text(coalesce(p.body #> '{document,escalation_routes}', '{}')) route
         WHERE p.status = 'open' AND p.kind = 'boundary'""",
}


class Migration(migrations.Migration):
    """The queues that are named already, and the reference of what waits in them."""

    dependencies = [
        ("orchestrator", "0045_prober"), ("approvals", "0012_queues"), ("tenancy", "0030_queues"),
    ]  # fmt: skip
    operations = [keep_named(NAMED), queue_key("orchestrator_reviewitem")]
