"""Publish and retire boundaries. A change that lets runs do more needs a second administrator.

Spec: R-GRAPH-10, R-GRAPH-11.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from orchestrator.core.approval.named_queues import queues_of_boundary
from orchestrator.core.compiler.boundary_change import list_widenings, read_boundary
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.domain.boundary import Boundary, ToolGrant
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.policies.queries.boundaries import (
    boundaries_now,
    boundary_document,
    boundary_in,
    newest_boundary,
    retirement_tag,
    version_left,
)
from orchestrator.publishing.actions.versions import hold_registry, publish_boundary
from orchestrator.publishing.models import BoundaryVersion, ToolVersion
from orchestrator.tools.actions.relaxation_proposals import or_propose
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.relaxation_proposals import boundary_name
from orchestrator.workflow_yaml import read_source
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import ask_second, check_reason
from tenancy.people.queues import check_queues


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryPublication:
    """A boundary version, and whether this publication created it."""

    version: BoundaryVersion
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryPreview:
    """A boundary as it would be published, the version before it, and where it lets runs do more."""

    boundary: Boundary
    before: BoundaryVersion | None
    weaker: tuple[str, ...]


def read_boundary_text(text: str) -> dict[str, Any]:
    """Read a boundary's document from YAML.

    Raises: InvalidInput with the line of invalid YAML.
    """
    try:
        return read_source(text).document
    except CompileFailed as error:
        found = error.data["faults"][0]
        line = f"Line {found['line']}: " if found["line"] else ""
        detail = f"{line}{found['sentence']}"
        raise InvalidInput(errors=[{"pointer": "/yaml", "code": "invalid", "detail": detail}]) from None


def preview_boundary(tenant_id: UUID, document: Mapping[str, Any]) -> BoundaryPreview:
    """Read a document and compare it with the current version. Changes nothing; opens the tenant's
    transaction.

    Raises: InvalidInput naming each wrong field.
    """
    boundary = read_boundary(document)
    with tenant_transaction(tenant_id):
        return _build_boundary_preview(boundary)


def ask_to_publish_boundary(
    tenant_id: UUID,
    document: Mapping[str, Any],
    *,
    expected: int | None = None,
    who: ChangeAuthor,
    reason: str,
) -> BoundaryPublication | ToolProposal:
    """Publish a boundary, or store a proposal if it lets runs do more. Outermost verb: owns the transaction.

    `expected` is the version that the caller looked at, 0 for none. Runs admitted before keep the version
    that they are pinned to.

    Raises: InvalidInput, Stale, ProposalOpen.
    """
    boundary = read_boundary(document)
    return or_propose(
        tenant_id,
        lambda: publish_read_boundary(
            tenant_id, boundary, expected=expected, by=who.principal, reason=reason
        ),
        kind="boundary",
        body={"document": boundary.model_dump(mode="json", exclude={"version"})},
        who=who,
        reason=reason,
    )


def ask_to_allow_tool(
    tenant_id: UUID, slug: str, tool: str, ceiling: Risk, *, who: ChangeAuthor, reason: str
) -> BoundaryPublication | ToolProposal:
    """Publish a boundary with one more tool or another ceiling for it, or store a proposal.

    The boundary's newest version is the base. Outermost verb: owns the transaction.

    Raises: NotFound, InvalidInput, Stale, ProposalOpen.
    """
    with tenant_transaction(tenant_id):
        row = newest_boundary(slug)
        if row is None:
            raise NotFound
        before = boundary_in(row)
    if ceiling.rank > before.risk_ceiling.rank:
        detail = f"The boundary's own ceiling is {before.risk_ceiling.value}."
        raise InvalidInput(errors=[{"pointer": "/risk_ceiling", "code": "invalid", "detail": detail}])
    # The first grant that names a tool applies.
    others = [grant for grant in before.tools if grant.name != tool]
    tools = [ToolGrant(name=tool, risk_ceiling=ceiling), *others]
    document = {**boundary_document(row), "tools": [one.model_dump(mode="json") for one in tools]}
    return ask_to_publish_boundary(tenant_id, document, expected=row.version, who=who, reason=reason)


def publish_read_boundary(
    tenant_id: UUID,
    boundary: Boundary,
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> BoundaryPublication:
    """Publish a parsed boundary, audited. Joins or opens the tenant's transaction.

    `agreed` is the administrator who agreed to a wider boundary. Publishing the current content again returns
    the current version.

    Raises: InvalidInput, Stale, SecondPersonNeeded.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        looked = _build_boundary_preview(boundary)
        number = looked.before.version if looked.before is not None else 0
        if expected is not None and expected != number:
            raise Stale
        name = boundary_name(boundary.slug)
        ask_second(tenant_id, name, looked.weaker, by=by, agreed=agreed, reason=reason, tag=str(number))
        version = publish_boundary(tenant_id, boundary, by=by)
        if version.version == number:
            return BoundaryPublication(version=version, new=False)
        outdate_proposals(tenant_id, name)
        before = {} if looked.before is None else {"version": number, "digest": looked.before.digest}
        after: dict[str, Any] = {"version": version.version, "digest": version.digest}
        if looked.weaker:
            after |= {"weaker": list(looked.weaker), "proposed_by": str(by) if by else None}
        write_audit_entry(
            tenant_id, agreed or by, verb="boundary.publish", object=f"boundary:{boundary.slug}",
            before=before, after=after, reason=reason,
        )  # fmt: skip
        return BoundaryPublication(version=version, new=True)


def ask_to_retire_boundary(
    tenant_id: UUID, slug: str, number: int, *, who: ChangeAuthor, reason: str
) -> BoundaryVersion | ToolProposal:
    """Retire a version of a boundary, or store a proposal if the remaining version lets runs do more.

    Outermost verb: owns the transaction.

    Raises: NotFound, InvalidInput, ProposalOpen.
    """
    return or_propose(
        tenant_id,
        lambda: retire_boundary(tenant_id, slug, number, by=who.principal, reason=reason),
        kind="boundary",
        body={"retire": {"slug": slug, "version": number}},
        who=who,
        reason=reason,
    )


def retire_boundary(
    tenant_id: UUID, slug: str, number: int, *, by: UUID | None, reason: str, agreed: UUID | None = None
) -> BoundaryVersion:
    """Retire a version of a boundary, audited. Joins or opens the tenant's transaction.

    New runs get the newest remaining version; if none is left, no run can begin under the boundary. Runs of
    the retired version go on. `agreed` is the administrator who agreed if the remaining version is wider. A
    version that was retired before keeps its time.

    Raises: NotFound, InvalidInput, SecondPersonNeeded.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        row = BoundaryVersion.objects.filter(slug=slug, version=number).first()
        if row is None:
            raise NotFound
        if row.retired_at is not None:
            return row
        name, weaker = boundary_name(slug), widenings_of_retirement(row)
        ask_second(tenant_id, name, weaker, by=by, agreed=agreed, reason=reason, tag=retirement_tag(slug))
        BoundaryVersion.objects.filter(id=row.id).update(retired_at=database_now())
        outdate_proposals(tenant_id, name)
        after: dict[str, Any] = {"version": number, "retired": True}
        if weaker:
            after |= {"weaker": list(weaker), "proposed_by": str(by) if by else None}
        write_audit_entry(
            tenant_id, agreed or by, verb="boundary.retire", object=f"boundary:{slug}",
            before={"version": number, "retired": False}, after=after, reason=reason,
        )  # fmt: skip
        row.refresh_from_db()
        return row


def widenings_of_retirement(row: BoundaryVersion) -> tuple[str, ...]:
    """List where new runs may do more once this version is retired, one sentence each.

    The list holds what the remaining version allows beyond this one. It is empty if this version is not in
    force or none is left. Call in the tenant's context.
    """
    now, left = newest_boundary(row.slug), version_left(row.slug)
    if now is None or now.id != row.id or left is None:
        return ()
    return tuple(list_widenings(boundary_in(row), boundary_in(left)))


def _build_boundary_preview(boundary: Boundary) -> BoundaryPreview:
    """Compare a boundary with the current version of its slug.

    A new boundary that is nowhere wider than another current boundary widens nothing: a task may already name
    that other one.
    """
    row = newest_boundary(boundary.slug)
    before = boundary_in(row) if row is not None else None
    _check_tools(boundary, before)
    check_queues(list(queues_of_boundary(boundary)))
    weaker = list_widenings(before, boundary)
    if before is None and any(not list_widenings(one.boundary, boundary) for one in boundaries_now()):
        weaker = ()
    return BoundaryPreview(boundary=boundary, before=row, weaker=weaker)


def _check_tools(boundary: Boundary, before: Boundary | None) -> None:
    """Check that each grant names a tool of the tenant. Names in the version before may stay.

    Raises: InvalidInput, for example for a misspelled name.
    """
    known = tuple(ToolVersion.objects.order_by("slug").values_list("slug", flat=True).distinct())
    stands = {grant.name for grant in before.tools} if before is not None else frozenset()
    faults = [
        {"pointer": f"/tools/{place}/name", "code": "unknown", "detail": f"There is no tool {grant.name}."}
        for place, grant in enumerate(boundary.tools)
        if grant.name not in stands and not any(map(grant.covers, known))
    ]
    if faults:
        raise InvalidInput(errors=faults)
