"""One small patch per rule of the pure core and its edges: each takes exactly one wall down for the length of
a block."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from orchestrator.core.calls import effective_risk
from orchestrator.core.common.run_status import TerminalClass
from orchestrator.core.compensation import saga
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.guardrails import content_screening, policy_evaluation, taint_tracking
from orchestrator.core.guardrails.taint_sources import Source
from orchestrator.core.guardrails.taint_tracking import TaintTracker
from orchestrator.core.policy.rules import Policy
from orchestrator.core.tools import egress_policy
from orchestrator.policies.actions import policy_versions
from orchestrator.tools.actions import tool_updates
from orchestrator.tools.gateways.sandbox import bwrap_arguments
from tenancy.people import dual_control

Felling = Callable[[], AbstractContextManager[Any]]


def no_provenance() -> AbstractContextManager[Any]:
    """Every value of a model counts as said by the goal."""
    return mock.patch.object(TaintTracker, "_found", return_value=Source("goal", ""))


def no_rules() -> AbstractContextManager[Any]:
    """No rule of a policy fits anything."""
    return mock.patch.object(Policy, "rule_for", return_value=None)


def no_additions() -> AbstractContextManager[Any]:
    """What is asked for after something untrusted was read is no addition."""
    return mock.patch.object(policy_evaluation, "_find_unplanned_change", return_value=None)


def no_load() -> AbstractContextManager[Any]:
    """No address carries anything."""
    return mock.patch.object(taint_tracking, "address_carries", return_value=False)


def no_text() -> AbstractContextManager[Any]:
    """No text takes anything to a server."""
    return mock.patch.object(taint_tracking, "text_carries", return_value=False)


def no_list() -> AbstractContextManager[Any]:
    """Every address is on the list."""
    return mock.patch.object(effective_risk, "is_url_allowed", return_value=True)


def no_kept_sources() -> AbstractContextManager[Any]:
    """All of an edited call is the person's."""
    return mock.patch.object(TaintTracker, "proposed_values", frozenset())


def no_detectors() -> AbstractContextManager[Any]:
    """Nobody looks at what a tool answered."""
    return mock.patch.object(content_screening, "discover_detectors", return_value={})


def no_reach() -> AbstractContextManager[Any]:
    """Every address counts as public."""
    return mock.patch.object(egress_policy, "reach_of", return_value="public")


def no_order() -> AbstractContextManager[Any]:
    """What was done is undone in the order in which it was done."""

    def oldest_first(state: RunState) -> list[Any]:
        return sorted(state.deeds.items())

    return mock.patch.object(saga, "newest_first", oldest_first)


def no_undo() -> AbstractContextManager[Any]:
    """A run that fails ends at once."""
    return mock.patch.object(saga, "ENDINGS", _AllWell())


class _AllWell(dict[Any, Any]):
    """Every end is one with a result."""

    def __missing__(self, _key: Any) -> Any:
        return mock.Mock(terminal_class=TerminalClass.COMMIT)


def no_comparison() -> AbstractContextManager[Any]:
    """No policy is weaker than another."""
    return mock.patch.object(policy_versions, "is_weaker_policy", return_value=False)


def no_weaker_tool() -> AbstractContextManager[Any]:
    """No version of a tool guards less than another."""
    return mock.patch.object(tool_updates, "describe_relaxations", return_value=())


def no_second_admin() -> AbstractContextManager[Any]:
    """Nobody is another administrator."""
    return mock.patch.object(dual_control, "another_admin", return_value=False)


@contextmanager
def no_own_files(place: str) -> Iterator[None]:
    """The sandbox sees a folder of the machine."""
    whole = bwrap_arguments.build_system_arguments

    def more() -> Iterator[str]:
        return (
            *whole(),
            *bwrap_arguments.build_folder_arguments(Path(place)),
            "--ro-bind",
            place,
            place,
        ).__iter__()

    with mock.patch.object(bwrap_arguments, "build_system_arguments", more):
        yield
