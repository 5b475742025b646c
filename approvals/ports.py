"""What upper floors lend to approvals: the judgement of edited arguments (R-APPR-3), and runs by name."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class Judged(NamedTuple):
    """Edited arguments after judgement: their normalised bytes, or None and why they are refused.

    `quorum` people must agree to them; `action_digest` is the action they make, `amount` what it moves
    (None: it moves none, or it cannot be read). `risk` is the class that agreeing takes where that is more
    than the request's own, `field` the one that a refusal is about. `holds_sealed`: a value in them is
    sealed; `sealed` are the payloads of what was sealed just now, which whoever keeps the bytes keeps too.
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
    """Judges what somebody puts in place of a call's arguments. Called inside the tenant's transaction."""

    def __call__(self, tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any, /) -> Judged:
        """The judgement; nothing is raised for arguments that are refused."""
        ...


class Nobody:
    """Stands in until somebody lends a judgement: every edit is refused."""

    def __call__(self, tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any, /) -> Judged:
        """No."""
        return Judged(None, refusal="edits cannot be judged here")


_CHECK: list[CheckEdit] = [Nobody()]


def register_edit_check(check: CheckEdit) -> None:
    """Lend the judgement. The last one registered counts."""
    _CHECK[:] = [check]


def check_edit(tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any) -> Judged:
    """Judge edited arguments."""
    return _CHECK[0](tenant_id, run_id, call_id, arguments)


class CheckExtension(Protocol):
    """Judges what somebody grants a run that asks for more budget. Called inside the tenant's transaction."""

    def __call__(self, tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any], /) -> Judged:
        """The judgement: the amounts as they are granted, the US$ of all grants to the run if there are any
        among them, and the risk class that granting them takes; nothing is raised."""
        ...


class NobodyExtends:
    """Stands in until somebody lends a judgement: every extension is refused."""

    def __call__(self, tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any], /) -> Judged:
        """No."""
        return Judged(None, refusal="extensions cannot be judged here")


_EXTENDS: list[CheckExtension] = [NobodyExtends()]


def register_extension_check(check: CheckExtension) -> None:
    """Lend the judgement. The last one registered counts."""
    _EXTENDS[:] = [check]


def check_extension(tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any]) -> Judged:
    """Judge the amounts of an extension (R-BUDGET-7)."""
    return _EXTENDS[0](tenant_id, run_id, packet, amounts)


class CallShape(NamedTuple):
    """How a tool's call is made up: the JSON Schema of its arguments, and pointers to the amount it moves and
    to the arguments that matter most."""

    input_schema: Mapping[str, Any]
    amount: str | None = None
    sensitive: tuple[str, ...] = ()


class RunWords(NamedTuple):
    """What a run is called."""

    workflow: str
    title: str
    status: str


class AskingRuns(Protocol):
    """The runs that ask. All are called inside the tenant's context and read only."""

    def shape(self, run_id: UUID, tool: str) -> CallShape | None:
        """A tool's call as the run is pinned to it; None where it knows no such tool."""
        ...

    def words(self, run_ids: Collection[UUID]) -> Mapping[UUID, RunWords]:
        """What these runs are called."""
        ...

    def of_workflow(self, slug: str) -> Any:
        """The ids of a workflow's runs, as a query to filter by."""
        ...

    def workflows(self) -> Sequence[str]:
        """The workflows there are, by name."""
        ...


class NoRuns:
    """Stands in until somebody lends the runs: they have no names, and nothing can be edited by a form."""

    def shape(self, run_id: UUID, tool: str) -> CallShape | None:
        """Unknown."""
        return None

    def words(self, run_ids: Collection[UUID]) -> Mapping[UUID, RunWords]:
        """None."""
        return {}

    def of_workflow(self, slug: str) -> Any:
        """None."""
        return ()

    def workflows(self) -> Sequence[str]:
        """None."""
        return ()


_RUNS: list[AskingRuns] = [NoRuns()]


def register_runs(runs: AskingRuns) -> None:
    """Lend the runs. The last ones registered count."""
    _RUNS[:] = [runs]


def asking_runs() -> AskingRuns:
    """The runs that ask."""
    return _RUNS[0]
