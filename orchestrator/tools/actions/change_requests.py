"""Changing, admitting and declaring tools, and saying where they go, as people and programs ask for it: at
once, or once a second administrator agrees where it guards less (R-TOOL-4, P4)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal
from uuid import UUID

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from orchestrator.core.compiler.boundary_change import read_boundary
from orchestrator.core.tools.registration import (
    Admission,
    HttpDeclaration,
    asked_admission,
    asked_declaration,
)
from orchestrator.core.tools.tool_update import ToolChange, asked_change
from orchestrator.llm.actions.tenant_models import (
    look_at_models,
    read_models,
    read_prices,
    set_looked_at,
    set_models,
)
from orchestrator.policies.actions.boundaries import (
    BoundaryPublication,
    publish_read_boundary,
    retire_boundary,
)
from orchestrator.policies.actions.dual_control import ChangeAuthor, not_own
from orchestrator.tools.actions.address_checks import check_database_addresses, check_mail_address
from orchestrator.tools.actions.destinations import (
    set_databases,
    set_looked_at_databases,
    set_looked_at_mail,
    set_mail,
    set_web,
    with_account,
    with_roles,
)
from orchestrator.tools.actions.http_tools import declare_http_tool, declare_looked_at, look_at_declared
from orchestrator.tools.actions.private_hosts import look_at_places, set_looked_at_places
from orchestrator.tools.actions.relaxation_proposals import Asked, or_propose, settle_proposal
from orchestrator.tools.actions.tool_servers import admit_tool
from orchestrator.tools.actions.tool_updates import change_tool
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.destinations import OutsideNow, outside_now
from orchestrator.tools.queries.relaxation_proposals import find_stale_reason, open_proposal
from orchestrator.tools.queries.tool_servers import PlacesNow
from orchestrator.tools.queries.tools import ToolNow
from tenancy.actions.sign_in_rules import read_rules, set_sign_in_rules
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.sign_in_rules import RulesNow

Models = tuple[Mapping[str, Any], ...]
ATTEMPTS: Final = 5
TAKEN: Final = {"code": "taken", "detail": "There is a model of this name; change it instead."}


def ask_to_change(
    tenant_id: UUID,
    name: str,
    change: ToolChange,
    *,
    who: ChangeAuthor,
    reason: str,
    expected: str | None = None,
) -> Asked:
    """Change a tool, or keep what was asked until a second person agrees. Outermost verb: owns the
    transaction. Raises NotFound, InvalidInput, Stale, ProposalOpen."""
    return or_propose(
        tenant_id,
        lambda: change_tool(tenant_id, name, change, by=who.principal, reason=reason, expected=expected),
        kind="change",
        body={"change": change.model_dump(mode="json", exclude_none=True)},
        who=who,
        reason=reason,
    )


def ask_to_admit(
    tenant_id: UUID, slug: str, tool: str, seen: str, admission: Admission, *, who: ChangeAuthor, reason: str
) -> Asked:
    """Admit a server's tool as it was seen, or keep what was asked. Outermost verb: owns the transaction.
    Raises NotFound, Stale, InvalidInput, NameTaken, ProposalOpen."""
    given = admission.model_dump(mode="json", exclude_unset=True)
    return or_propose(
        tenant_id,
        lambda: admit_tool(tenant_id, slug, tool, seen, admission, by=who.principal, reason=reason),
        kind="admit",
        body={"server": slug, "tool": tool, "seen": seen, "admission": given},
        who=who,
        reason=reason,
    )


def ask_to_declare(tenant_id: UUID, declaration: HttpDeclaration, *, who: ChangeAuthor, reason: str) -> Asked:
    """Publish an HTTP tool, or keep what was asked. Outermost verb: owns the transaction. Raises
    InvalidInput, DefinitionRefused, EgressRefused, SecretUnusable, NameTaken, ProposalOpen."""
    given = declaration.model_dump(mode="json", exclude_unset=True)
    return or_propose(
        tenant_id,
        lambda: declare_http_tool(tenant_id, declaration, by=who.principal, reason=reason),
        kind="declare",
        body={"declaration": given},
        who=who,
        reason=reason,
    )


def ask_to_list(
    tenant_id: UUID, allow: tuple[str, ...], *, expected: int | None, who: ChangeAuthor, reason: str
) -> OutsideNow | ToolProposal:
    """Make these the web addresses that tools read without asking, or keep what was asked where they are more
    than before. Outermost verb: owns the transaction. Raises InvalidInput, Stale, ProposalOpen."""
    return or_propose(
        tenant_id,
        lambda: set_web(tenant_id, allow, expected=expected, by=who.principal, reason=reason),
        kind="web",
        body={"allow": list(allow)},
        who=who,
        reason=reason,
    )


def ask_for_databases(
    tenant_id: UUID,
    given: tuple[Mapping[str, Any], ...],
    *,
    expected: int | None,
    who: ChangeAuthor,
    reason: str,
) -> OutsideNow | ToolProposal:
    """Make these the databases that tools may ask, or keep what was asked where they reach more than before.
    Outermost verb: owns the transaction. Raises InvalidInput, Stale, ProposalOpen."""
    # What waits names the users of today: another secret under the same name is not what is agreed to.
    wanted = tuple(one.model_dump(mode="json") for one in with_roles(tenant_id, given).databases)
    return or_propose(
        tenant_id,
        lambda: set_databases(tenant_id, wanted, expected=expected, by=who.principal, reason=reason),
        kind="databases",
        body={"databases": list(wanted)},
        who=who,
        reason=reason,
    )


def ask_for_mail(
    tenant_id: UUID, given: Mapping[str, Any], *, expected: int | None, who: ChangeAuthor, reason: str
) -> OutsideNow | ToolProposal:
    """Say where letters go, or keep what was asked where they reach more than before. Outermost verb: owns
    the transaction. Raises InvalidInput, Stale, ProposalOpen."""
    wanted = with_account(tenant_id, given).model_dump(mode="json")
    return or_propose(
        tenant_id,
        lambda: set_mail(tenant_id, wanted, expected=expected, by=who.principal, reason=reason),
        kind="mail",
        body={"server": wanted},
        who=who,
        reason=reason,
    )


def ask_for_models(
    tenant_id: UUID,
    given: tuple[Mapping[str, Any], ...],
    *,
    expected: int | None,
    who: ChangeAuthor,
    reason: str,
) -> OutsideNow | ToolProposal:
    """Make these the tenant's own models, or keep what was asked where prompts go elsewhere than before.
    Outermost verb: owns the transaction. Raises InvalidInput, Stale, ProposalOpen."""
    return or_propose(
        tenant_id,
        lambda: set_models(tenant_id, given, expected=expected, by=who.principal, reason=reason),
        kind="models",
        body={"profiles": [dict(one) for one in given]},
        who=who,
        reason=reason,
    )


def ask_to_name_model(
    tenant_id: UUID,
    name: str,
    given: Mapping[str, Any],
    *,
    expected: int | None,
    who: ChangeAuthor,
    reason: str,
    only: Literal["new", "known", "either"] = "either",
) -> OutsideNow | ToolProposal:
    """Add a model, or change the tenant's own of this name by what is given. Outermost verb: owns the
    transaction. `only`: whether it has to be a new one, or one that stands. Raises NotFound, InvalidInput
    naming each field of it, Stale, ProposalOpen."""

    def compute_wanted_models(listed: Models) -> tuple[Models, int]:
        at = next((place for place, one in enumerate(listed) if one["name"] == name), len(listed))
        stands = at < len(listed)
        if only == "known" and not stands:
            raise NotFound
        if only == "new" and stands:
            raise InvalidInput(errors=[{"pointer": "/name", **TAKEN}])
        before = listed[at] if stands and only == "known" else {}
        return (*listed[:at], {**before, "name": name, **given}, *listed[at + 1 :]), at

    return _request_model_change(tenant_id, compute_wanted_models, expected=expected, who=who, reason=reason)


def ask_to_forget_model(
    tenant_id: UUID, name: str, *, expected: int | None, who: ChangeAuthor, reason: str
) -> OutsideNow | ToolProposal:
    """Ask a model of the tenant's own no more, from the next run on. Outermost verb: owns the transaction.
    Raises NotFound, InvalidInput where others still name it, Stale, ProposalOpen."""

    def compute_wanted_models(listed: Models) -> tuple[Models, int]:
        others = tuple(one for one in listed if one["name"] != name)
        if len(others) == len(listed):
            raise NotFound
        return others, len(listed)

    return _request_model_change(tenant_id, compute_wanted_models, expected=expected, who=who, reason=reason)


def _request_model_change(
    tenant_id: UUID,
    wanted: Callable[[Models], tuple[Models, int]],
    *,
    expected: int | None,
    who: ChangeAuthor,
    reason: str,
) -> OutsideNow | ToolProposal:
    """The list with one model of it changed, as nobody else changed it meanwhile: whoever named no version
    looks again where somebody did."""
    for attempt in range(ATTEMPTS):
        with tenant_transaction(tenant_id):
            now = outside_now("models")
        version = now.version if expected is None else expected
        models, at = wanted(tuple(now.body.get("profiles", ())))
        try:
            return ask_for_models(tenant_id, models, expected=version, who=who, reason=reason)
        except InvalidInput as error:
            raise InvalidInput(errors=[_of_one(one, at) for one in error.data["errors"]]) from None
        except Stale:
            if expected is not None or attempt == ATTEMPTS - 1:
                raise
    raise Stale


def _of_one(error: dict[str, Any], at: int) -> dict[str, Any]:
    """A fault of a list, as one of the single model that was given."""
    head, pointer = f"/profiles/{at}/", str(error["pointer"])
    return {**error, "pointer": f"/{pointer.removeprefix(head)}"} if pointer.startswith(head) else error


Agreed = ToolNow | OutsideNow | PlacesNow | Ceilings | BoundaryPublication | RulesNow


def agree_to_tool(tenant_id: UUID, proposal: UUID | None, *, who: ChangeAuthor, reason: str) -> Agreed:
    """A second person's yes to what waits. Outermost verb: owns the transaction. Raises NotFound,
    OwnProposal, ProposalSettled, InvalidInput, and Stale where it is not what was looked at any more."""

    with tenant_transaction(tenant_id):
        waiting = open_proposal(proposal)
        not_own(waiting, who)
    # The network is asked before the registry is held: a name that nobody answers for would hold up all.
    if waiting.kind in LOOKED_AT:
        LOOKED_AT[waiting.kind](tenant_id, waiting.body)

    def perform(row: ToolProposal, agreed: UUID) -> Agreed:
        if find_stale_reason(tenant_id, row):
            raise Stale
        return DONE[row.kind](tenant_id, row, agreed)

    return settle_proposal(tenant_id, proposal, perform, who=who, reason=reason)


def _apply_tool_change(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> ToolNow:
    change = asked_change(row.body["change"])
    return change_tool(tenant_id, row.tool, change, by=row.by, reason=row.reason, agreed=agreed)


def _apply_tool_admission(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> ToolNow:
    body = row.body
    return admit_tool(
        tenant_id, body["server"], body["tool"], body["seen"], asked_admission(body["admission"]), by=row.by,
        reason=row.reason, agreed=agreed,
    )  # fmt: skip


def _apply_tool_declaration(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> ToolNow:
    declaration = asked_declaration(row.body["declaration"])
    return declare_looked_at(tenant_id, declaration, by=row.by, reason=row.reason, agreed=agreed)


def _apply_web_allowlist(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> OutsideNow:
    wanted = tuple(row.body["allow"])
    return set_web(tenant_id, wanted, expected=None, by=row.by, reason=row.reason, agreed=agreed)


def _name_databases(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> OutsideNow:
    wanted = with_roles(tenant_id, tuple(row.body["databases"]))
    return set_looked_at_databases(
        tenant_id, wanted, expected=None, by=row.by, reason=row.reason, agreed=agreed
    )


def _name_mail(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> OutsideNow:
    wanted = with_account(tenant_id, row.body["server"])
    return set_looked_at_mail(tenant_id, wanted, expected=None, by=row.by, reason=row.reason, agreed=agreed)


def _name_models(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> OutsideNow:
    profiles = tuple(row.body["profiles"])
    return set_looked_at(
        tenant_id, read_models(profiles), read_prices(profiles), expected=None, by=row.by, reason=row.reason,
        agreed=agreed,
    )  # fmt: skip


def _open_places(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> PlacesNow:
    wanted = tuple(row.body["places"])
    return set_looked_at_places(tenant_id, wanted, expected=None, by=row.by, reason=row.reason, agreed=agreed)


def _raise_ceilings(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> Ceilings:
    wanted = Ceilings.model_validate(row.body["ceilings"])
    return change_ceilings(tenant_id, wanted, by=row.by, reason=row.reason, agreed=agreed)


def _change_boundary(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> BoundaryPublication:
    if (asked := row.body.get("retire")) is not None:
        retired = retire_boundary(
            tenant_id, asked["slug"], asked["version"], by=row.by, reason=row.reason, agreed=agreed
        )
        return BoundaryPublication(version=retired, new=False)
    boundary = read_boundary(row.body["document"])
    return publish_read_boundary(
        tenant_id, boundary, expected=None, by=row.by, reason=row.reason, agreed=agreed
    )


def _set_sign_in_rules(tenant_id: UUID, row: ToolProposal, agreed: UUID) -> RulesNow:
    rules = read_rules(row.body["rules"])
    return set_sign_in_rules(
        tenant_id, rules, expected=None, by=row.by, reason=row.reason, agreed=agreed
    )  # fmt: skip


LOOKED_AT: Final[Mapping[str, Callable[[UUID, Mapping[str, Any]], object]]] = {
    "declare": lambda house, body: look_at_declared(house, asked_declaration(body["declaration"])),
    "models": lambda house, body: look_at_models(
        house, read_models(tuple(body["profiles"])), read_prices(tuple(body["profiles"]))
    ),
    "databases": lambda house, body: check_database_addresses(
        house, with_roles(house, tuple(body["databases"]))
    ),
    "mail": lambda house, body: check_mail_address(house, with_account(house, body["server"])),
    "places": lambda house, body: look_at_places(house, tuple(body["places"])),
}
"""How the addresses of what waits are judged once more, before a second person's yes counts."""
DONE: Final[Mapping[str, Callable[[UUID, ToolProposal, UUID], Agreed]]] = {
    "change": _apply_tool_change,
    "admit": _apply_tool_admission,
    "declare": _apply_tool_declaration,
    "web": _apply_web_allowlist,
    "databases": _name_databases,
    "mail": _name_mail,
    "models": _name_models,
    "places": _open_places,
    "ceilings": _raise_ceilings,
    "boundary": _change_boundary,
    "sign_in": _set_sign_in_rules,
}
"""What is done once a second person agrees, by what waits."""
