"""Ports through which upper layers provide the check of edits (R-APPR-3) and the runs by name."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class EditJudgement(NamedTuple):
    """Edited arguments after judgement: their normalized bytes, or None and why they are refused.

    - `quorum`: the number of people who must agree to them.
    - `action_digest`: the action they make; `amount`: the amount it moves (None: none, or it cannot be
      read).
    - `risk`: the class that agreeing requires, if higher than the request's own.
    - `field`: the field that a refusal is about.
    - `holds_sealed`: a value in them is sealed.
    - `sealed`: the payloads sealed by this judgement; a caller that stores the bytes must store these too.
    """

    body: bytes | None
    quorum: int = 1
    action_digest: str = ""
    refusal: str = ""
    amount: Decimal | None = None
    risk: str = ""
    field: str = ""
    holds_sealed: bool = False
    sealed: Mapping[str, bytes] = MappingProxyType({})


class CheckEdit(Protocol):
    """Checks edited arguments of a call. Called inside the tenant's transaction."""

    def __call__(self, tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any, /) -> EditJudgement:
        """Return the judgement; refused arguments raise nothing."""
        ...


class RefuseEveryEdit:
    """The default until a check is registered: every edit is refused."""

    def __call__(self, tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any, /) -> EditJudgement:
        return EditJudgement(None, refusal="edits cannot be judged here")


_CHECK: list[CheckEdit] = [RefuseEveryEdit()]


def register_edit_check(check: CheckEdit) -> None:
    """Register the check of edits. The last one registered applies."""
    _CHECK[:] = [check]


def check_edit(tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any) -> EditJudgement:
    """Judge edited arguments with the registered check."""
    return _CHECK[0](tenant_id, run_id, call_id, arguments)


class CheckExtension(Protocol):
    """Checks the amounts granted to a run that requests more budget. Called in the tenant's transaction."""

    def __call__(
        self, tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any], /
    ) -> EditJudgement:
        """Return the judgement; refused amounts raise nothing.

        It has the amounts as granted, the US$ of all grants to the run if these amounts include US$, and
        the risk class that granting them requires.
        """
        ...


class NobodyExtends:
    """The default until a check is registered: every extension is refused."""

    def __call__(
        self, tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any], /
    ) -> EditJudgement:
        return EditJudgement(None, refusal="extensions cannot be judged here")


_EXTENDS: list[CheckExtension] = [NobodyExtends()]


def register_extension_check(check: CheckExtension) -> None:
    """Register the check of extensions. The last one registered applies."""
    _EXTENDS[:] = [check]


def check_extension(
    tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any]
) -> EditJudgement:
    """Judge the amounts of an extension with the registered check (R-BUDGET-7)."""
    return _EXTENDS[0](tenant_id, run_id, packet, amounts)


class CallShape(NamedTuple):
    """The structure of a tool's call.

    It has the JSON Schema of the arguments, and pointers to the amount moved and to the most important
    arguments.
    """

    input_schema: Mapping[str, Any]
    amount: str | None = None
    sensitive: tuple[str, ...] = ()


class RunWords(NamedTuple):
    """The names of a run for display."""

    workflow: str
    title: str
    status: str


class AskingRuns(Protocol):
    """The runs that make requests. All methods are called in the tenant's context and only read."""

    def shape(self, run_id: UUID, tool: str) -> CallShape | None:
        """Return the structure of a tool's call as pinned by the run; None if the run has no such tool."""
        ...

    def words(self, run_ids: Collection[UUID]) -> Mapping[UUID, RunWords]:
        """Return the display names of these runs."""
        ...

    def of_workflow(self, slug: str) -> Any:
        """Return the ids of a workflow's runs, as a query to filter by."""
        ...

    def workflows(self) -> Sequence[str]:
        """List the workflows by name."""
        ...


class NoRuns:
    """The default until runs are registered: runs have no names, and no form can edit a call."""

    def shape(self, run_id: UUID, tool: str) -> CallShape | None:
        """Return None: no tool is known."""
        return None

    def words(self, run_ids: Collection[UUID]) -> Mapping[UUID, RunWords]:
        """Return no names."""
        return {}

    def of_workflow(self, slug: str) -> Any:
        """Return no runs."""
        return ()

    def workflows(self) -> Sequence[str]:
        """Return no workflows."""
        return ()


_RUNS: list[AskingRuns] = [NoRuns()]


def register_runs(runs: AskingRuns) -> None:
    """Register the runs. The last ones registered apply."""
    _RUNS[:] = [runs]


def asking_runs() -> AskingRuns:
    """Return the registered runs."""
    return _RUNS[0]
