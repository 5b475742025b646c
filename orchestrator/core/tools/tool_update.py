"""Changes that an admin may make to a tool, and their limits (R-TOOL-2 to R-TOOL-4)."""

from decimal import Decimal
from typing import Any, Literal

from pydantic import Field, ValidationError

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Scope


class ToolChange(FrozenModel):
    """The requested change; None leaves a field as it is. Prices are US$ per call, times are milliseconds."""

    risk: Risk | None = None
    approval: Literal["by_risk", "always", "never"] | None = None
    scopes: tuple[Scope, ...] | None = Field(default=None, max_length=len(Scope))
    price_usd: Decimal | None = Field(default=None, ge=0, le=10_000, decimal_places=9)
    rate_per_minute: int | None = Field(default=None, ge=1, le=100_000)
    timeout_ms: int | None = Field(default=None, ge=1, le=600_000)
    max_retries: int | None = Field(default=None, ge=0, le=10)
    max_result_chars: int | None = Field(default=None, ge=100, le=1_000_000)
    enabled: bool | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of the definition that are given."""
        given = {name: getattr(self, name) for name in ADJUSTABLE}
        return {name: value for name, value in given.items() if value is not None}


ADJUSTABLE = tuple(name for name in ToolChange.model_fields if name != "enabled")
"""The fields of a definition that an admin may set. The rest is the tool itself and changes with its code."""


def asked_change(given: dict[str, Any]) -> ToolChange:
    """Parse the change in a body or a form.

    Raises: InvalidInput naming each wrong or unknown field.
    """
    try:
        return ToolChange.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(
            errors=[
                {
                    "pointer": "/" + "/".join(str(part) for part in found["loc"]),
                    "code": "unknown" if found["type"] == "extra_forbidden" else "invalid",
                    "detail": found["msg"],
                }
                for found in error.errors(include_url=False, include_input=False, include_context=False)
            ]
        ) from None


def with_tool_change(spec: ToolSpec, change: ToolChange) -> ToolSpec:
    """Return the definition after a change, with the same version number.

    Raises: InvalidInput for a change that would allow something that no admin may allow.
    """
    fields = change.fields()
    if "scopes" in fields:
        fields["scopes"] = tuple(scope.value for scope in Scope if scope in fields["scopes"])
    after = spec.evolve(**fields)
    if faults := faults_of(after):
        raise InvalidInput(errors=faults)
    return after


def faults_of(spec: ToolSpec) -> list[dict[str, str]]:
    """Return the reasons why a definition is not allowed."""
    found: list[dict[str, str]] = []
    if spec.risk is Risk.READ_ONLY and spec.reversibility is not Reversibility.PURE:
        found.append(
            _make_field_error(
                "/risk", f"It changes something ({spec.reversibility.value}), so it is not read_only."
            )
        )
    if spec.approval == "never" and spec.risk.is_gated:
        found.append(
            _make_field_error("/approval", f"A {spec.risk.value} call is always put before a person.")
        )
    if spec.compensation is not None and spec.reversibility in (
        Reversibility.PURE,
        Reversibility.IRREVERSIBLE,
    ):
        found.append(
            _make_field_error("/compensation", f"What is {spec.reversibility.value} is not undone by a tool.")
        )
    if spec.approval == "never" and spec.reversibility is Reversibility.IRREVERSIBLE:
        found.append(
            _make_field_error("/approval", "A call that cannot be taken back is always put before a person.")
        )
    return found


def _make_field_error(pointer: str, detail: str) -> dict[str, str]:
    return {"pointer": pointer, "code": "not-allowed", "detail": detail}


def diff_tool_specs(before: ToolSpec, after: ToolSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ, before and after; the version is ignored."""
    was, now = before.model_dump(mode="json"), after.model_dump(mode="json")
    names = [name for name in was if name != "version" and was[name] != now[name]]
    return {name: was[name] for name in names}, {name: now[name] for name in names}


def with_admin_settings(shipped: ToolSpec, standing: ToolSpec) -> ToolSpec:
    """Return a newly shipped definition with the admin's settings.

    If the new definition forbids them, it is returned without any of them.
    """
    own = shipped.evolve(**{name: getattr(standing, name) for name in ADJUSTABLE})
    return shipped if faults_of(own) else own
