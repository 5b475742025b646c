"""Text as an attacker would write it, put into every column that holds outside text, each with its own tag.

The verbs refuse much of it at the door; here it stands in the tables as if every door had failed, so that the
pages are judged by themselves. A column that is neither `SHOWN` nor of a closed vocabulary fails a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson
import psycopg
from django.apps import apps
from django.db import models
from psycopg import sql

from tests.factories.world import World

APPS: Final = ("tenancy", "traces", "approvals", "budgets", "orchestrator")
MARKUP, TEMPLATE = "<script>alert(1)</script>", "{{ 7|add:7 }}"
BITS: Final = (
    "<b onclick=x>", "'\"", "a\u202egnp.exe", "\x1b[31mred", "pass\u200bword", "a" + "\u0301" * 9, MARKUP,
    TEMPLATE, "\ufefffirst", "p\u0430ypal", "\u2066inner\u2069",
)  # fmt: skip
BLANKS, WORD = " " * 10_000, "W" * 400
# What people, programs, models and tools may write, as the tables call it.
SHOWN: Final = (
    "tenancy.Tenant.name", "tenancy.Person.name", "tenancy.Principal.label", "tenancy.ApiKey.label",
    "tenancy.AuditEntry.object", "tenancy.AuditEntry.before", "tenancy.AuditEntry.after",
    "tenancy.AuditEntry.reason", "tenancy.Webhook.name", "tenancy.Webhook.url", "tenancy.Webhook.off_why",
    "tenancy.WebhookAttempt.error", "tenancy.Secret.origin", "budgets.TenantCeiling.reason",
    "budgets.Price.provider", "budgets.Price.model", "budgets.Price.reason", "budgets.RateLimit.reason",
    "approvals.Decision.reason", "approvals.Handling.text", "orchestrator.WorkflowVersion.title",
    "orchestrator.CorpusDocument.title", "orchestrator.CorpusDocument.reason",
    "orchestrator.CorpusPassage.text", "orchestrator.PolicyProposal.reason", "orchestrator.Run.title",
    "orchestrator.Run.reason", "orchestrator.ToolServer.address", "orchestrator.ToolServer.named",
    "orchestrator.ToolServer.fault", "orchestrator.ServerTool.why", "orchestrator.PrivatePlaces.reason",
    "orchestrator.Outside.reason", "orchestrator.EmergencyStop.reason", "orchestrator.SavedView.name",
    "orchestrator.WorkspaceRevision.summary", "orchestrator.ReviewItem.subject",
    "orchestrator.ReviewItem.reason",
)  # fmt: skip
# What only Interlock writes, or what a pattern or a list holds to names.
NAMES: Final = """
    slug time_zone tier password email role max_risk kind key path verb name origin state actor source
    outcome target currency dimension effect_id cause price_version terminal_code workflow call_id
    status packet_digest action_digest tool queue risk granted_action previous digest subject
    argument_digest effect graph corpus language sha256 verdict position result lease_owner
    manifest_digest pins_digest tool_digest id secret secret_header protocol seen admitted scope
    goal_digest mode idempotency_key asked_digest query severity finding body_digest amounts trust tag
"""
CLOSED: Final = frozenset(NAMES.split())
# Words that no page of this house shows: letters that could not be sent, what programs read alone, and the
# ends of what goes on in it.
UNSEEN: Final = frozenset(
    {
        "budgets.AlertMail.error", "orchestrator.CircuitRow.reason", "orchestrator.MemoryProposal.text",
        "orchestrator.MemoryVerdict.reason", "orchestrator.PolicyProposal.settled_reason",
        "orchestrator.ReviewWord.note", "tenancy.WebhookMessage.subject", "tenancy.WebhookAttempt.said",
        "tenancy.Secret.renews_at", "approvals.Request.ended_because", "orchestrator.CorpusDocument.text",
        "orchestrator.CorpusPassage.heading", "orchestrator.PolicyVersion.reason",
        "orchestrator.ToolProposal.reason", "orchestrator.ToolProposal.settled_reason",
    }
)  # fmt: skip
CAME: Final = ("tenancy_webhook SET off_at = now()", "orchestrator_workspacerevision SET cause = 'changed'")


def columns() -> Iterator[tuple[str, Any]]:
    """Every column of text in the tables of the house, by its name "app.Model.column"."""
    for model in apps.get_models():
        if model._meta.app_label in APPS:
            for field in model._meta.fields:
                if isinstance(field, models.CharField | models.TextField):
                    yield f"{model._meta.label}.{field.name}", field


def tag(name: str) -> str:
    """What the page is searched for."""
    return f"F{SHOWN.index(name):02d}F"


def hostile(mark: str, longest: int | None = None) -> str:
    """The whole corpus after a mark; where there is little room, as much of it as fits, and a long word."""
    if longest is None:
        return " ".join((mark, *BITS, BLANKS, WORD, "end"))
    found = mark
    for bit in BITS:
        if len(found) + len(bit) < longest - 20:
            found += " " + bit
    return (found + " " + "W" * longest)[:longest]


def taint(superuser: psycopg.Connection[Any], world: World) -> None:
    """Write the corpus over every column of `SHOWN` in this tenant's rows, guards or no guards."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        for name in SHOWN:
            _write(superuser, world, name)
        # A reason is shown where something came of it.
        for change in CAME:
            superuser.execute(f"UPDATE {change} WHERE tenant_id = %s", (world.id,))
        _taint_packets(superuser, world)


def _write(superuser: psycopg.Connection[Any], world: World, name: str) -> None:
    label, _, column = name.rpartition(".")
    model = apps.get_model(label)
    field = model._meta.get_field(column)
    text = hostile(tag(name), getattr(field, "max_length", None))
    value = sql.Literal(orjson.dumps({"k": text}).decode() if isinstance(field, models.JSONField) else text)
    superuser.execute(
        sql.SQL("UPDATE {} SET {} = {} WHERE {} = {}").format(
            sql.Identifier(model._meta.db_table), sql.Identifier(column), value, *_whose(label, world)
        )
    )


def _whose(label: str, world: World) -> tuple[sql.Composable, sql.Composable]:
    if label == "tenancy.Tenant":
        return sql.Identifier("id"), sql.Literal(world.id)
    if label == "tenancy.Person":
        return sql.Identifier("id"), sql.Literal(world.people.admin.person.id)
    return sql.Identifier("tenant_id"), sql.Literal(world.id)


def _taint_packets(superuser: psycopg.Connection[Any], world: World) -> None:
    found = superuser.execute(
        "SELECT id, packet FROM approvals_request WHERE tenant_id = %s", (world.id,)
    ).fetchall()
    for request, body in found:
        packet = orjson.loads(bytes(body))
        packet |= {key: hostile(f"P-{key}") for key in ("goal", "step", "why", "trigger") if key in packet}
        if packet["tool"]:
            told = ("description", "effect", "blast_radius", "rollback")
            packet["tool"] |= {key: hostile(f"P-{key}", 600) for key in told}
        for fact in packet["evidence"]:
            fact["value"] = hostile("P-value")
        if packet["arguments"]:
            arguments = orjson.loads(packet["arguments"]) | {"reason": hostile("P-argument")}
            packet["arguments"] = orjson.dumps(arguments).decode()
        superuser.execute(
            "UPDATE approvals_request SET packet = %s WHERE id = %s", (orjson.dumps(packet), request)
        )
