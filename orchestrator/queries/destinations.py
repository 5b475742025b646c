"""Reads of the ways out of a tenant's house. Inside the tenant's context."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from orchestrator.core.llm.tenant_models import OwnModels
from orchestrator.core.tools.destinations import Databases, MailServer, WebRules
from orchestrator.models import MailDraft, Outside
from orchestrator.queries.retry_lineage import line_of

Kind = Literal["web", "databases", "mail", "models"]
KINDS: Final[tuple[Kind, ...]] = ("web", "databases", "mail", "models")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideNow:
    """What holds for one way out; version 0 is that nobody has said anything."""

    kind: Kind
    body: dict[str, Any]
    version: int = 0
    reason: str = ""
    by: UUID | None = None
    at: datetime | None = None


def outside_now(kind: Kind) -> OutsideNow:
    """The version in force."""
    newest = Outside.objects.filter(kind=kind).order_by("-version").first()
    return OutsideNow(kind=kind, body={}) if newest is None else _build_destination(kind, newest)


def outside_before(kind: Kind) -> list[OutsideNow]:
    """Every version, newest first, fifty at most."""
    return [
        _build_destination(kind, row) for row in Outside.objects.filter(kind=kind).order_by("-version")[:50]
    ]


def web_rules() -> WebRules:
    """The web list in force."""
    return WebRules.model_validate(outside_now("web").body)


def get_allowed_databases() -> Databases:
    """The databases in force."""
    return Databases.model_validate(outside_now("databases").body)


def mail_server() -> MailServer | None:
    """The mail server in force; None where nobody has named one."""
    body = outside_now("mail").body
    return MailServer.model_validate(body) if body else None


def own_models() -> OwnModels:
    """The models that the tenant names itself."""
    return OwnModels.model_validate(outside_now("models").body)


def draft_of(run: UUID, draft: UUID) -> str | None:
    """The digest of a draft of a run, or of one that it goes on from; or None."""
    return (
        MailDraft.objects.filter(run_id__in=line_of(run), id=draft).values_list("sha256", flat=True).first()
    )


def kept_draft(run: UUID, draft: UUID) -> tuple[dict[str, Any], str] | None:
    """What such a draft says, and the digest it was kept under; or None."""
    return MailDraft.objects.filter(run_id__in=line_of(run), id=draft).values_list("body", "sha256").first()


def _build_destination(kind: Kind, row: Outside) -> OutsideNow:
    return OutsideNow(kind=kind, body=row.body, version=row.version, reason=row.reason, by=row.by, at=row.at)
