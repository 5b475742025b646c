"""Reads of a tenant's outbound destinations. Call them inside the tenant's context."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from orchestrator.core.llm.tenant_models import OwnModels
from orchestrator.core.tools.destinations import Databases, MailServer, WebRules
from orchestrator.runs.queries.retry_lineage import line_of
from orchestrator.tools.models.destinations import MailDraft, Outside

Kind = Literal["web", "databases", "mail", "models"]
KINDS: Final[tuple[Kind, ...]] = ("web", "databases", "mail", "models")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideNow:
    """The rules in force for one kind of destination; version 0 means that none were set."""

    kind: Kind
    body: dict[str, Any]
    version: int = 0
    reason: str = ""
    by: UUID | None = None
    at: datetime | None = None


def outside_now(kind: Kind) -> OutsideNow:
    """Return the version in force."""
    newest = Outside.objects.filter(kind=kind).order_by("-version").first()
    return OutsideNow(kind=kind, body={}) if newest is None else _build_destination(kind, newest)


def outside_before(kind: Kind) -> list[OutsideNow]:
    """Return every version, newest first, fifty at most."""
    return [
        _build_destination(kind, row) for row in Outside.objects.filter(kind=kind).order_by("-version")[:50]
    ]


def web_rules() -> WebRules:
    """Return the web list in force."""
    return WebRules.model_validate(outside_now("web").body)


def get_allowed_databases() -> Databases:
    """Return the databases in force."""
    return Databases.model_validate(outside_now("databases").body)


def mail_server() -> MailServer | None:
    """Return the mail server in force; None where none was named."""
    body = outside_now("mail").body
    return MailServer.model_validate(body) if body else None


def own_models() -> OwnModels:
    """Return the models that the tenant configured."""
    return OwnModels.model_validate(outside_now("models").body)


def draft_of(run: UUID, draft: UUID) -> str | None:
    """Return the digest of a draft of a run, or of an earlier run in its line of retries; or None."""
    return (
        MailDraft.objects.filter(run_id__in=line_of(run), id=draft).values_list("sha256", flat=True).first()
    )


def kept_draft(run: UUID, draft: UUID) -> tuple[dict[str, Any], str] | None:
    """Return the content of such a draft, and the digest it was stored under; or None."""
    return MailDraft.objects.filter(run_id__in=line_of(run), id=draft).values_list("body", "sha256").first()


def _build_destination(kind: Kind, row: Outside) -> OutsideNow:
    return OutsideNow(kind=kind, body=row.body, version=row.version, reason=row.reason, by=row.by, at=row.at)
