"""What makes a tool less guarded: against the version before it, and against what it looks like."""

from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.domain.tool_spec import (
    Compensation,
    Egress,
    HttpRequest,
    QuorumStep,
    Remote,
    Reversibility,
    Risk,
    ToolSpec,
    Verifier,
)
from orchestrator.core.tools.guard_relaxation import (
    below_request,
    describe_relaxations,
    describe_weaker_redeclaration,
    describe_weaker_registration,
    suggested_risk,
)
from orchestrator.core.tools.registration import (
    Admission,
    asked_admission,
    asked_declaration,
    build_http_tool_spec,
    build_remote_tool_spec,
)
from orchestrator.core.tools.remote_definition import Definition
from tenancy.core.errors import InvalidInput
from tests.core.orchestrator.injected import TOOLS
from tests.proves import proves

SEND = TOOLS["mail.send"].evolve(scopes=("submit",), approval="always")
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def defined(name: str = "get_order", *arguments: str, **hints: bool) -> Definition:
    """What a server offers."""
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}}
    return Definition(name=name, input_schema=schema, annotations=dict(hints))


@proves("R-TOOL-4", part="what guards a tool less")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"risk": Risk.LOCAL_WRITE}, "falls from network to local_write"),
        ({"reversibility": Reversibility.REVERSIBLE}, "no longer as irreversible"),
        ({"approval": "by_risk"}, "no longer always"),
        ({"scopes": ()}, "no longer: submit"),
        ({"sensitive": ("/to",)}, "No longer sensitive: /text"),
        ({"trust": "trusted"}, "are trusted"),
    ],
)
def test_less_of_a_guard_is_found(change: dict[str, Any], said: str) -> None:
    assert said in " ".join(describe_relaxations(SEND, SEND.evolve(**change)))


KEPT = SEND.evolve(
    reversibility=Reversibility.COMPENSABLE,
    lookup=True,
    verifier=Verifier(name="asked", equal={"/result/a": "/arguments/a"}),
    compensation=Compensation(tool="mail.recall", wanted="It is recalled."),
    amount="/amount",
    quorum=(QuorumStep(up_to=Decimal(50), approvers=1), QuorumStep(approvers=2)),
)


@proves("R-TOOL-4", part="recovery, verification, undoing and the number of people")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"honours_keys": True}, "trusting in its key"),
        ({"conclusive": True}, "does not find is sent again"),
        ({"error_means_no_effect": True}, "counts as not made"),
        ({"verifier": None}, "no longer verified"),
        ({"verifier": Verifier(name="asked")}, "no longer verified"),
        ({"compensation": None}, "no longer undone"),
        ({"quorum": (QuorumStep(approvers=1),)}, "Fewer people"),
        ({"quorum": (QuorumStep(up_to=Decimal(60), approvers=1), QuorumStep(approvers=2))}, "Fewer people"),
        ({"amount": "/tip"}, "Fewer people"),
    ],
)
def test_what_is_sent_again_proven_undone_and_by_how_many_is_a_guard_too(
    change: dict[str, Any], said: str
) -> None:
    assert said in " ".join(describe_relaxations(KEPT, KEPT.evolve(**change)))
    assert describe_relaxations(KEPT.evolve(lookup=False), KEPT)


@pytest.mark.parametrize(
    "change",
    [
        {"lookup": False},
        {"quorum": (QuorumStep(up_to=Decimal(40), approvers=1), QuorumStep(approvers=3))},
        {
            "verifier": Verifier(
                name="asked", equal={"/result/a": "/arguments/a", "/result/b": "/arguments/b"}
            )
        },
    ],
)
def test_more_proof_and_more_people_are_no_loosening(change: dict[str, Any]) -> None:
    assert describe_relaxations(KEPT, KEPT.evolve(**change)) == ()


@pytest.mark.parametrize(
    "change",
    [
        {}, {"risk": Risk.DESTRUCTIVE}, {"timeout_ms": 99}, {"sensitive": ("/to", "/text", "/cc")},
        {"scopes": ("submit", "admin")}, {"rate_per_minute": 1},
    ],
)  # fmt: skip
def test_what_guards_as_much_is_no_loosening(change: dict[str, Any]) -> None:
    assert describe_relaxations(SEND, SEND.evolve(**change)) == ()


def test_fewer_addresses_are_less_of_a_guard() -> None:
    reads = TOOLS["shop.find"]
    assert describe_relaxations(
        reads, reads.evolve(egress=Egress(argument="", marked=("/target",), named=False))
    )
    assert describe_relaxations(reads, reads.evolve(egress=Egress(argument="")))
    assert describe_relaxations(reads, reads.evolve(egress=None))
    assert not describe_relaxations(reads, reads.evolve(egress=Egress(argument="", marked=("/target", "/x"))))
    assert describe_relaxations(reads, reads.evolve(egress=None, risk=Risk.LOCAL_WRITE))
    assert not describe_relaxations(reads, reads.evolve(egress=None, risk=Risk.NETWORK))


@proves("P4", part="hints are believed where they ask for more care alone")
@pytest.mark.parametrize(
    ("definition", "risk"),
    [
        (defined("get_order"), Risk.READ_ONLY),
        (defined("searchMail"), Risk.READ_ONLY),
        (defined("get_order", readOnlyHint=False), Risk.NETWORK),
        (defined("get_order", destructiveHint=True), Risk.DESTRUCTIVE),
        (defined("send_note", readOnlyHint=True), Risk.NETWORK),
        (defined("get_and_delete", readOnlyHint=True), Risk.NETWORK),
        (defined("order", readOnlyHint=True), Risk.NETWORK),
        (defined("frobnicate", readOnlyHint=True), Risk.NETWORK),
        (defined("get", "command"), Risk.NETWORK),
        (defined("check", "account", "amount"), Risk.NETWORK),
        (defined("check", "account"), Risk.READ_ONLY),
    ],
)
def test_a_definition_suggests_the_strictest_class(definition: Definition, risk: Risk) -> None:
    assert suggested_risk(definition) is risk


@proves("R-TOOL-21", part="an admission below what the tool looks like")
@pytest.mark.parametrize(
    ("definition", "admission", "said"),
    [
        (defined("send_note"), {"risk": "read_only", "reversibility": "pure"}, "looks like network"),
        (defined("send_note"), {"risk": "network", "reversibility": "irreversible"}, ""),
        (defined("get_order"), {"risk": "read_only", "reversibility": "pure"}, ""),
        (
            defined("send_note", "to", "text"),
            {"risk": "network", "reversibility": "irreversible", "sensitive": ("/to",)},
            "Not sensitive would be: text",
        ),
        (
            defined("get_page", "url", "page"),
            {"risk": "read_only", "reversibility": "pure", "addresses": ("/page",)},
            "No address would be: url",
        ),
    ],
)
def test_an_admission_is_compared_with_what_is_admitted(
    definition: Definition, admission: dict[str, Any], said: str
) -> None:
    spec = build_remote_tool_spec(
        "shop.x", "shop", "https://shop.example", definition, Admission.model_validate(admission)
    )
    found = " ".join(describe_weaker_registration(definition, spec))
    assert said in found
    assert bool(said) == bool(found)


def test_a_request_that_sends_is_no_reader_by_itself() -> None:
    request = HttpRequest(method="POST", url="https://crm.example/find")
    remote = Remote(kind="http", origin="https://crm.example", request=request)
    spec = TOOLS["shop.find"].evolve(remote=remote, input_schema=NOTHING)
    assert "POST" in below_request(spec)[0]
    reading = remote.evolve(request=request.evolve(method="GET"))
    assert below_request(spec.evolve(remote=reading)) == ()


def sending(method: str, *arguments: str, host: str = "crm.example", **more: Any) -> ToolSpec:
    """A declared tool."""
    request = {
        "method": method,
        "url": f"https://{host}/orders",
        "body": "none" if method == "GET" else "rest",
    }
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}}
    given = {
        "name": "crm.orders", "description": "Orders.", "input_schema": schema, "request": request,
        "risk": "read_only", "reversibility": "pure",
    } | more  # fmt: skip
    if method == "GET":
        given["request"]["query"] = {one: one for one in arguments}
    return build_http_tool_spec(asked_declaration(given))


CHANGES: dict[str, Any] = {"risk": "network", "reversibility": "irreversible", "sensitive": ["/note"]}


@proves("R-TOOL-20", part="another request needs a second person again")
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (sending("GET"), sending("DELETE"), "sends DELETE"),
        (sending("GET"), sending("GET", host="other.example"), "goes to https://other.example"),
        (
            sending("POST", "note", **CHANGES),
            sending("POST", "note", "iban", "amount", **CHANGES),
            "Not sensitive would be: amount, iban",
        ),
        (sending("GET", "note"), sending("GET", "note", risk="local_write", sensitive=[]), "sensitive"),
        (sending("GET"), sending("GET"), ""),
        (sending("GET"), sending("GET", "page"), ""),
    ],
)
def test_a_declaration_of_another_request_is_looked_at_anew(
    before: ToolSpec, after: ToolSpec, said: str
) -> None:
    found = " ".join(describe_weaker_redeclaration(before, after))
    assert said in found
    assert bool(said) == bool(found)


def classed(given: dict[str, Any]) -> ToolSpec:
    """A server's tool as somebody admits it."""
    return build_remote_tool_spec(
        "crm.get_order", "crm", "https://crm.example", defined(), asked_admission(given)
    )


@proves("G4", part="no class is left out")
@pytest.mark.parametrize(
    "given", [{}, {"risk": None}, {"risk": ""}, {"risk": "harmless"}, {"risk": "READ_ONLY"}, {"risk": 0}]
)
def test_what_is_admitted_without_a_class_is_not_admitted(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        classed({"reversibility": "pure", "recovery": "read_only", **given})
    assert "risk" in str(caught.value.data["errors"])
