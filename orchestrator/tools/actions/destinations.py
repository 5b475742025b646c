"""Saying where a tenant's shipped tools may go: versions, each with its reason (R-TOOL-2, R-TOOL-4)."""

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from pydantic import ValidationError

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.destinations import (
    MOST_ADDRESSES,
    Database,
    Databases,
    MailServer,
    WebRules,
    account_in,
    describe_wider_web_rules,
    entry_of,
    wider_databases,
    wider_mail,
)
from orchestrator.core.tools.egress_policy import reach_of
from orchestrator.core.tools.registration import refused_fields
from orchestrator.publishing.actions.versions import hold_registry, publish_registry, publish_tool
from orchestrator.tools.actions.address_checks import check_database_addresses, check_mail_address
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from orchestrator.tools.models.destinations import Outside
from orchestrator.tools.queries.destinations import (
    Kind,
    OutsideNow,
    get_allowed_databases,
    mail_server,
    outside_now,
    web_rules,
)
from orchestrator.tools.queries.tools import registry_tools, tools_now
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, SecretUnusable, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.dual_control import ask_second, check_reason
from tenancy.secret_store import reveal_secret

V = TypeVar("V", bound=FrozenModel)
# What a proposal calls each list; no tool is called so.
WEB, DATABASES, MAIL = "web addresses", "databases to ask", "the mail server"


def set_web(
    tenant_id: UUID,
    allow: tuple[str, ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """Make exactly these the web addresses that tools read without asking. Outermost verb: owns the
    transaction.

    Every tool that goes where its arguments say gets a version with the new list: runs admitted from now on
    have it. What is taken off the list is closed to runs under way too, at their next call. `expected` is the
    version that was looked at, `agreed` who agreed to what it has more than before. Raises InvalidInput
    naming each bad entry, Stale, SecondPersonNeeded.
    """
    rules = WebRules(allow=_parse_allowlist_entries(allow))
    with tenant_transaction(tenant_id):
        tag = hold_outside(tenant_id, "web", expected)
        more = describe_wider_web_rules(web_rules(), rules)
        ask_second(tenant_id, WEB, more, by=by, agreed=agreed, reason=reason, tag=tag)
        now = keep_outside(tenant_id, "web", rules, by=by, reason=reason, agreed=agreed)
        _publish_web_tools(tenant_id, rules, by=by)
        return now


def set_databases(
    tenant_id: UUID,
    given: tuple[Mapping[str, Any], ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """Make exactly these the databases that tools may ask, from the next call on. Outermost verb: owns the
    transaction. `agreed` is who agreed to what is reached more than before. The name of a database of the
    operator's is not taken. Raises InvalidInput naming each bad field, Stale, SecondPersonNeeded."""
    wanted = with_roles(tenant_id, given)
    check_database_addresses(tenant_id, wanted)
    return set_looked_at_databases(tenant_id, wanted, expected=expected, by=by, reason=reason, agreed=agreed)


def set_looked_at_databases(
    tenant_id: UUID,
    wanted: Databases,
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """`set_databases` of what was read and looked at before: it asks no network. Opens or joins the
    transaction."""
    operators = frozenset(settings.INTERLOCK_DATABASES)
    with tenant_transaction(tenant_id):
        tag = hold_outside(tenant_id, "databases", expected)
        before = get_allowed_databases()
        hidden = operators - {one.name for one in before.databases}
        for number, one in enumerate(wanted.databases):
            if one.name in hidden:
                raise _build_input_error(
                    f"/databases/{number}/name", "The operator has a database of this name."
                )
        wider = wider_databases(before, wanted, operators=operators)
        ask_second(tenant_id, DATABASES, wider, by=by, agreed=agreed, reason=reason, tag=tag)
        return keep_outside(tenant_id, "databases", wanted, by=by, reason=reason, agreed=agreed)


def set_mail(
    tenant_id: UUID,
    given: Mapping[str, Any],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """Say where letters are given up and from whom they are, from the next call on. Outermost verb: owns the
    transaction. `agreed` is who agreed to a wider way than before. Raises InvalidInput naming each bad field,
    Stale, SecondPersonNeeded."""
    wanted = with_account(tenant_id, given)
    check_mail_address(tenant_id, wanted)
    return set_looked_at_mail(tenant_id, wanted, expected=expected, by=by, reason=reason, agreed=agreed)


def set_looked_at_mail(
    tenant_id: UUID,
    wanted: MailServer,
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """`set_mail` of what was read and looked at before: it asks no network. Opens or joins the
    transaction."""
    with tenant_transaction(tenant_id):
        tag = hold_outside(tenant_id, "mail", expected)
        more = wider_mail(mail_server(), wanted)
        ask_second(tenant_id, MAIL, more, by=by, agreed=agreed, reason=reason, tag=tag)
        return keep_outside(tenant_id, "mail", wanted, by=by, reason=reason, agreed=agreed)


def with_roles(tenant_id: UUID, given: tuple[Mapping[str, Any], ...]) -> Databases:
    """The list as it is to be kept: each role by the user that its secret names now, where nobody says which.
    Raises InvalidInput."""
    wanted = read_outside(Databases, {"databases": list(given)})
    for number, one in enumerate(wanted.databases):
        _check_reachable_host(one, f"/databases/{number}/host")
        if any(other.name == one.name for other in wanted.databases[:number]):
            raise _build_input_error(f"/databases/{number}/name", "Each name stands for one database.")
    return Databases(databases=tuple(_with_accounts(tenant_id, one) for one in wanted.databases))


def _with_accounts(tenant_id: UUID, one: Database) -> Database:
    reader = one.reader_account or _get_secret_account(tenant_id, one.reader, one.origin)
    writer = one.writer and (one.writer_account or _get_secret_account(tenant_id, one.writer, one.origin))
    return one.evolve(reader_account=reader, writer_account=writer)


def with_account(tenant_id: UUID, given: Mapping[str, Any]) -> MailServer:
    """The mail server as it is to be kept, by the user that its secret names now, where nobody says which.
    Raises InvalidInput."""
    wanted = read_outside(MailServer, dict(given))
    if not wanted.host:
        return wanted.evolve(account="")
    _check_reachable_host(wanted, "/host")
    here = wanted.target.literal
    if wanted.secret and wanted.tls == "off" and not (here is not None and here.is_loopback):
        raise _build_input_error("/tls", "A password is not sent in the clear.")
    account = wanted.account or _get_secret_account(tenant_id, wanted.secret, wanted.origin)
    return wanted.evolve(account=wanted.secret and account)


def _get_secret_account(tenant_id: UUID, secret: str, origin: str) -> str:
    """The user that a secret names; "" where it is not kept yet, or opens for another place."""
    try:
        return account_in(reveal_secret(tenant_id, secret, origin))
    except SecretUnusable:
        return ""


def keep_outside(
    tenant_id: UUID, kind: Kind, body: FrozenModel, *, by: UUID | None, reason: str, agreed: UUID | None
) -> OutsideNow:
    """Keep a version; the same again is the one that stands. Joins the caller's transaction, which holds the
    registry. Raises InvalidInput."""
    check_reason(reason)
    before, wanted = outside_now(kind), body.model_dump(mode="json")
    if before.version and wanted == before.body:
        return before
    Outside.objects.create(
        tenant_id=tenant_id, kind=kind, version=before.version + 1, body=wanted, reason=reason[:500], by=by,
        at=database_now(),
    )  # fmt: skip
    after = {"version": before.version + 1, **wanted, **({"agreed_by": str(agreed)} if agreed else {})}
    write_audit_entry(
        tenant_id, by, verb=f"outside.{kind}", object=f"outside:{kind}",
        before={"version": before.version, **before.body}, after=after, reason=reason,
    )  # fmt: skip
    outdate_proposals(tenant_id)
    return outside_now(kind)


def hold_outside(tenant_id: UUID, kind: Kind, expected: int | None) -> str:
    """The version in force, as the tag of what was looked at; nobody else makes another until the transaction
    ends. Raises Stale."""
    hold_registry(tenant_id)
    version = outside_now(kind).version
    if expected is not None and expected != version:
        raise Stale
    return str(version)


def with_list(spec: ToolSpec, rules: WebRules) -> ToolSpec:
    """The tool under a web list; one that goes nowhere by its arguments stays as it is."""
    return spec if spec.egress is None else spec.evolve(egress=spec.egress.evolve(allow=rules.allow))


def _publish_web_tools(tenant_id: UUID, rules: WebRules, *, by: UUID | None) -> None:
    active = dict(registry_tools())
    # Disabled ones too: whoever enables one again enables it under the list that then holds.
    for tool in tools_now(tenant_id):
        if tool.spec.egress is not None:
            row = publish_tool(tenant_id, with_list(tool.spec, rules), by=by)
            active |= {tool.spec.name: row.digest} if tool.enabled else {}
    publish_registry(tenant_id, active, by=by)


def read_outside(kind: type[V], given: dict[str, Any]) -> V:
    """The value in a body. Raises InvalidInput naming each wrong or unknown field."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise refused_fields(error) from None


def _check_reachable_host(asked: Database | MailServer, pointer: str) -> None:
    """Raises InvalidInput for what is no host, or can never be reached."""
    try:
        found = asked.target
        if found.literal is not None and reach_of(found.literal) == "never":
            raise EgressRefused(
                detail=f"{found.host} can never be reached: link-local, multicast or reserved"
            )
    except EgressRefused as refused:
        raise _build_input_error(pointer, str(refused.data["detail"])) from None


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "not-allowed", "detail": detail}])


def _parse_allowlist_entries(allow: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    faults: list[dict[str, Any]] = []
    for number, text in enumerate(allow):
        try:
            found.append(entry_of(text.strip()))
        except EgressRefused as refused:
            faults.append(
                {"pointer": f"/allow/{number}", "code": "not-allowed", "detail": refused.data["detail"]}
            )
    if len(allow) > MOST_ADDRESSES:
        faults.append(
            {"pointer": "/allow", "code": "not-allowed", "detail": f"At most {MOST_ADDRESSES} addresses."}
        )
    if faults:
        raise InvalidInput(errors=faults)
    return tuple(sorted(dict.fromkeys(found)))
