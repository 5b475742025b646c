"""Failover: where the model that plays a role cannot be asked, the next in line takes over (R-TOOL-22).

It stays with the run: a conversation is not handed back and forth, and what a provider could not answer a
moment ago is not tried again at every step. Everything here follows from the pins and the state alone; pins
from before there was failover name nobody, so their runs replay as they were.
"""

from collections.abc import Iterator

from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_events import ModelFailed, Recovered
from orchestrator.core.domain.run_state import RunState

# What is wrong with the request, was refused by ourselves or ends our workers is so with every provider.
OURS = frozenset({"rejected", "refused_by_wall", "script_mismatch", "crashed"})


def base_profile(pins: Pins, state: RunState, role: Role) -> ModelProfile:
    """Who plays `role` as long as money is no matter: its own profile, or whoever took over from it."""
    own = pins.profile_for(role)
    if own.name not in state.stood_down:
        return own
    return next((one for one in _list_failover_chain(pins, own) if one.name not in state.stood_down), own)


def list_failover_candidates(
    pins: Pins, state: RunState, role: Role, failed: ModelProfile
) -> Iterator[ModelProfile]:
    """Who may take over from `failed`, which plays `role` now, in order: from a cheaper model first the one
    that it plays for. Nobody does where the role's own profile names nobody."""
    own, base = pins.profile_for(role), base_profile(pins, state, role)
    line = _list_failover_chain(pins, own)
    out = {failed.name, base.name, *state.stood_down, *state.flagged}
    if line and failed.name != base.name and base.name not in state.flagged:
        yield base
    yield from (one for one in line if one.name not in out)


def handed_to(pins: Pins, state: RunState, role: Role, failed: ModelProfile, heir: ModelProfile) -> RunState:
    """The state in which `heir` plays `role`: who failed stands down for good, with everybody before the heir
    in the line."""
    own = pins.profile_for(role)
    names = [profile.name for profile in (own, *_list_failover_chain(pins, own))]
    before = [] if heir.name == base_profile(pins, state, role).name else names[: names.index(heir.name)]
    return state.evolve(
        stood_down=tuple(dict.fromkeys((*state.stood_down, failed.name, *before))),
        counters=state.counters.evolve(model_attempts=0),
    )


def can_failover_help(event: ModelFailed | Recovered) -> bool:
    """Whether another provider may do better than the one that failed."""
    return isinstance(event, Recovered) or event.error not in OURS


def _list_failover_chain(pins: Pins, own: ModelProfile) -> list[ModelProfile]:
    """Those who take over from `own`, in order. One that could not be pinned, as for want of a price, is
    passed over."""
    named = {profile.name: profile for profile in pins.profiles}
    return [named[name] for name in own.failover if name in named]
