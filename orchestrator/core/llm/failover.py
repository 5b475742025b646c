"""Failover: if the model of a role is unavailable, the next profile in the chain takes over.

The run keeps the new model: a conversation does not move back and forth, and a provider that has just failed
is not tried again at every step. The result depends on the pins and the state alone. Pins made before
failover existed list no failover profiles, so their runs replay unchanged.

Spec: R-TOOL-22.
"""

from collections.abc import Iterator

from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_events import ModelFailed, Recovered
from orchestrator.core.domain.run_state import RunState

# Errors that any provider would repeat: a faulty request, our own refusal, or a crash of our workers.
OURS = frozenset({"rejected", "refused_by_wall", "script_mismatch", "crashed"})


def base_profile(pins: Pins, state: RunState, role: Role) -> ModelProfile:
    """Return the profile that plays `role` if cost is ignored: its own, or the one that took over."""
    own = pins.profile_for(role)
    if own.name not in state.stood_down:
        return own
    return next((one for one in _list_failover_chain(pins, own) if one.name not in state.stood_down), own)


def list_failover_candidates(
    pins: Pins, state: RunState, role: Role, failed: ModelProfile
) -> Iterator[ModelProfile]:
    """Yield the profiles that may take over from `failed`, which plays `role` now, in order.

    If `failed` is the cheaper model of a role, the first candidate is the profile that it replaces. Nothing
    is yielded if the role's own profile names no failover profile.
    """
    own, base = pins.profile_for(role), base_profile(pins, state, role)
    line = _list_failover_chain(pins, own)
    out = {failed.name, base.name, *state.stood_down, *state.flagged}
    if line and failed.name != base.name and base.name not in state.flagged:
        yield base
    yield from (one for one in line if one.name not in out)


def handed_to(pins: Pins, state: RunState, role: Role, failed: ModelProfile, heir: ModelProfile) -> RunState:
    """Return the state in which `heir` plays `role`.

    The failed profile is excluded for good, together with every profile before `heir` in the chain.
    """
    own = pins.profile_for(role)
    names = [profile.name for profile in (own, *_list_failover_chain(pins, own))]
    before = [] if heir.name == base_profile(pins, state, role).name else names[: names.index(heir.name)]
    return state.evolve(
        stood_down=tuple(dict.fromkeys((*state.stood_down, failed.name, *before))),
        counters=state.counters.evolve(model_attempts=0),
    )


def can_failover_help(event: ModelFailed | Recovered) -> bool:
    """Return whether another provider may succeed where this one failed."""
    return isinstance(event, Recovered) or event.error not in OURS


def _list_failover_chain(pins: Pins, own: ModelProfile) -> list[ModelProfile]:
    """Return the profiles that take over from `own`, in order.

    A profile that could not be pinned, for example because it has no price, is skipped.
    """
    named = {profile.name: profile for profile in pins.profiles}
    return [named[name] for name in own.failover if name in named]
