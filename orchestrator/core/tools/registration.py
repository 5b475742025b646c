"""Registration of tools that are not our own code: an admin's settings, and the resulting version.

None of it is taken from the tool's own server: neither its risk, nor how a call is recovered.

Spec: R-TOOL-20, R-TOOL-21.
"""

from decimal import Decimal
from typing import Any, Literal

from pydantic import Field, ValidationError

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.memory_gate import CATEGORY as MEMORY
from orchestrator.core.domain.tool_category import CATEGORIES, NONE, default_queue, remote_risk
from orchestrator.core.domain.tool_spec import (
    Compensation,
    Egress,
    HttpRequest,
    Remote,
    RemoteLookup,
    Reversibility,
    Risk,
    ToolSpec,
    Verifier,
)
from orchestrator.core.tools.http_tool import checked_request
from orchestrator.core.tools.remote_definition import TEXT_RESULT, Definition, checked_schema
from orchestrator.core.tools.tool_update import faults_of
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Scope

FORMATS = ("uri", "uri-reference", "iri", "iri-reference", "url", "hostname", "idn-hostname", "ipv4", "ipv6")
Recovery = Literal["read_only", "keys", "lookup", "none"]


class Admission(FrozenModel):
    """The conditions under which a tool may be used.

    `recovery` decides about a call whose outcome is unknown: repeated because it only reads, repeated under
    its key, looked up, or put before a person (`none`). `error_means_no_effect`: an answer that reports a
    failure also reports that nothing was changed.

    `sensitive` None: every argument is. `addresses` are the arguments that a tool without a gate takes for an
    address or a host; None: those whose name or format says so. A value with the shape of an address always
    counts as one. `price_usd` None: the cost of a call is unknown. `risk` None and an empty `queue` mean the
    defaults of the `category` (orchestrator/core/domain/tool_category.py).
    """

    risk: Risk | None = None
    reversibility: Reversibility
    recovery: Recovery = "none"
    lookup: RemoteLookup | None = None
    conclusive: bool = False
    error_means_no_effect: bool = False
    approval: Literal["by_risk", "always", "never"] = "by_risk"
    category: str = Field(default=NONE, min_length=1, max_length=64)
    scopes: tuple[Scope, ...] = ()
    sensitive: tuple[str, ...] | None = Field(default=None, max_length=64)
    addresses: tuple[str, ...] | None = Field(default=None, max_length=64)
    verifier: Verifier | None = None
    price_usd: Decimal | None = Field(default=None, ge=0, le=10_000, decimal_places=9)
    rate_per_minute: int = Field(default=20, ge=1, le=100_000)
    timeout_ms: int = Field(default=15_000, ge=1, le=600_000)
    max_retries: int = Field(default=2, ge=0, le=10)
    max_result_chars: int = Field(default=20_000, ge=100, le=1_000_000)
    side_effects: str = Field(default="", max_length=500)
    effect_sentence: str = Field(default="", max_length=500)
    blast_radius: str = Field(default="", max_length=500)
    facts: dict[str, str] = Field(default_factory=dict, max_length=32)
    compensation: Compensation | None = None
    queue: str = Field(default="", max_length=64)


class HttpDeclaration(Admission):
    """A tool that is one HTTP request: its name, its input and output, and how it is sent."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$", max_length=64)
    description: str = Field(min_length=1, max_length=4_000)
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] = Field(default_factory=dict)
    request: HttpRequest


class RequestBesideOperation(HttpRequest):
    """The parts of a request that differ from the operation of an OpenAPI document."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: str = Field(default="", max_length=2_000)


class DeclarationBesideOperation(HttpDeclaration):
    """A tool that is an operation of an OpenAPI document, which supplies the fields left out here."""

    description: str = Field(default="", min_length=1, max_length=4_000)
    input_schema: dict[str, Any] = Field(default_factory=dict)
    request: RequestBesideOperation = RequestBesideOperation()


def asked_admission(given: dict[str, Any]) -> Admission:
    """Parse the admission in a body or a form.

    Raises: InvalidInput naming each wrong or unknown field.
    """
    try:
        return Admission.model_validate(given)
    except ValidationError as error:
        raise refused_fields(error) from None


def asked_declaration(given: dict[str, Any]) -> HttpDeclaration:
    """Parse the declaration in a body.

    Raises: InvalidInput naming each wrong or unknown field.
    """
    try:
        return HttpDeclaration.model_validate(given)
    except ValidationError as error:
        raise refused_fields(error) from None


def build_remote_tool_spec(
    name: str, server: str, origin: str, definition: Definition, admission: Admission
) -> ToolSpec:
    """Build the version of a server's tool under an admission; the caller sets the version number.

    Raises: InvalidInput.
    """
    remote = Remote(
        kind="mcp", origin=origin, server=server, tool=definition.name, definition=definition.digest,
        lookup=admission.lookup if admission.recovery == "lookup" else None,
    )  # fmt: skip
    output = definition.output_schema if definition.output_schema is not None else TEXT_RESULT
    described = definition.description or definition.title or definition.name
    return _build_tool_spec(name, described, definition.input_schema, output, admission, remote)


def build_http_tool_spec(declaration: HttpDeclaration) -> ToolSpec:
    """Build the version of a declared HTTP tool.

    Raises: InvalidInput, DefinitionRefused, EgressRefused.
    """
    inputs = checked_schema(declaration.input_schema, "input")
    if inputs.get("additionalProperties", True) is not False:
        inputs = {**inputs, "additionalProperties": False}
    output = checked_schema(declaration.output_schema, "output", object_only=False)
    properties = inputs.get("properties")
    names = tuple(properties) if isinstance(properties, dict) else ()
    target = checked_request(declaration.request, names)
    lookup = declaration.lookup if declaration.recovery == "lookup" else None
    remote = Remote(kind="http", origin=target.origin, request=declaration.request, lookup=lookup)
    return _build_tool_spec(declaration.name, declaration.description, inputs, output, declaration, remote)


def _build_tool_spec(
    name: str,
    description: str,
    inputs: dict[str, Any],
    output: dict[str, Any],
    admission: Admission,
    remote: Remote,
) -> ToolSpec:
    risk = _resolve_risk(admission)
    reads, keys = risk is Risk.READ_ONLY, admission.recovery == "keys"
    spec = ToolSpec(
        name=name,
        version=1,
        description=description,
        category=admission.category,
        capability=name,
        input_schema=inputs,
        output_schema=output,
        risk=risk,
        reversibility=admission.reversibility,
        side_effects=admission.side_effects,
        approval=admission.approval,
        scopes=tuple(scope.value for scope in Scope if scope in admission.scopes),
        timeout_ms=admission.timeout_ms,
        max_retries=admission.max_retries if reads or keys else 0,
        error_means_no_effect=admission.error_means_no_effect and not reads,
        honours_keys=keys,
        lookup=admission.recovery == "lookup",
        conclusive=admission.recovery == "lookup" and admission.conclusive,
        price_usd=admission.price_usd,
        rate_per_minute=admission.rate_per_minute,
        max_result_chars=admission.max_result_chars,
        verifier=admission.verifier,
        trust="untrusted",
        sensitive=_resolve_sensitive_pointers(inputs, admission, risk),
        secrets=(remote.request.secret,) if remote.request is not None and remote.request.secret else (),
        parallel_safe=reads,
        external=True,
        effect_sentence=admission.effect_sentence,
        blast_radius=admission.blast_radius,
        facts=admission.facts,
        remote=remote,
        queue=admission.queue or default_queue(admission.category),
        compensation=admission.compensation,
        egress=_build_egress(inputs, admission, risk),
    )
    if found := [*faults_of(spec), *_collect_field_errors(spec, admission)]:
        raise InvalidInput(errors=found)
    return spec


def _resolve_risk(admission: Admission) -> Risk:
    """Return the admission's risk class, else the default of its category.

    Raises: InvalidInput if neither gives one.
    """
    category = admission.category
    if admission.risk is not None:
        return admission.risk
    if category not in (NONE, MEMORY, *CATEGORIES):
        known = ", ".join([*CATEGORIES, NONE])
        raise InvalidInput(
            errors=[_make_field_error("/category", f"There is no such category. There are: {known}.")]
        )
    if (found := remote_risk(category, admission.reversibility)) is not None:
        return found
    if category in CATEGORIES:
        raise InvalidInput(errors=[_changes_nothing(category)])
    raise InvalidInput(
        errors=[_make_field_error("/risk", "Say the risk class: without a category it has no default.")]
    )


def _changes_nothing(category: str) -> dict[str, str]:
    title = CATEGORIES[category].title
    return _make_field_error("/category", f"Tools of this category ({title}) change nothing.")


def _resolve_sensitive_pointers(inputs: dict[str, Any], admission: Admission, risk: Risk) -> tuple[str, ...]:
    """Return the sensitive arguments: those an admin named, else all of a call that changes something."""
    if admission.sensitive is not None:
        return admission.sensitive
    properties = inputs.get("properties")
    if risk is Risk.READ_ONLY or not isinstance(properties, dict):
        return ()
    return tuple(map(_encode_json_pointer, properties))


def _build_egress(inputs: dict[str, Any], admission: Admission, risk: Risk) -> Egress | None:
    """Build the egress rule of a tool without a gate; None for a gated tool (G3).

    Every address that the tool is given is judged by the web list, which the caller supplies, because even a
    tool that only reads could carry data away.
    """
    if risk.is_gated:
        return None
    if admission.addresses is not None:
        return Egress(argument="", marked=admission.addresses, named=False)
    properties = inputs.get("properties")
    held = properties if isinstance(properties, dict) else {}
    formed = [n for n, one in held.items() if isinstance(one, dict) and one.get("format") in FORMATS]
    return Egress(argument="", marked=tuple(map(_encode_json_pointer, formed)))


def _encode_json_pointer(name: str) -> str:
    return "/" + str(name).replace("~", "~0").replace("/", "~1")


def _collect_field_errors(spec: ToolSpec, admission: Admission) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    if admission.category == MEMORY:
        found.append(_make_field_error("/category", "Only the tools that are shipped write to memory."))
    reads_alone = admission.category in CATEGORIES and CATEGORIES[admission.category].final is None
    if reads_alone and spec.is_mutating and admission.risk is not None:
        found.append(_changes_nothing(admission.category))
    if spec.compensation is None and _taken_back(spec):
        detail = (
            f"What is {spec.reversibility.value} names the tool that takes it back; else it is irreversible."
        )
        found.append(_make_field_error("/compensation", detail))
    if admission.recovery == "read_only" and spec.is_mutating:
        found.append(
            _make_field_error("/recovery", "Only what is read_only and pure may simply be called again.")
        )
    if admission.recovery == "lookup":
        lookup, remote = admission.lookup, spec.remote
        here = lookup is not None and (lookup.tool if remote and remote.kind == "mcp" else lookup.path)
        if lookup is None or not here or not lookup.found.startswith("/"):
            found.append(_make_field_error("/lookup", "Name the look-up, and the pointer to what it finds."))
    return found


def _taken_back(spec: ToolSpec) -> bool:
    """Return whether a change outside is declared as one that a tool can undo (R-TOOL-3)."""
    compensable = spec.reversibility is Reversibility.COMPENSABLE
    return compensable or (spec.reversibility is Reversibility.REVERSIBLE and spec.risk.is_gated)


def _make_field_error(pointer: str, detail: str) -> dict[str, str]:
    return {"pointer": pointer, "code": "not-allowed", "detail": detail}


def refused_fields(error: ValidationError) -> InvalidInput:
    """Return the error that lists each wrong or unknown field by its pointer."""
    return InvalidInput(
        errors=[
            {
                "pointer": "/" + "/".join(str(part) for part in found["loc"]),
                "code": "unknown" if found["type"] == "extra_forbidden" else "invalid",
                "detail": found["msg"],
            }
            for found in error.errors(include_url=False, include_input=False, include_context=False)[:50]
        ]
    )
