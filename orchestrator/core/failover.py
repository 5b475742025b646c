"""Failover: where the model that plays a role cannot be asked, the next in line takes over (R-TOOL-22).

It stays with the run: a conversation is not handed back and forth, and what a provider could not answer a
moment ago is not tried again at every step. Everything here follows from the pins and the state alone; pins
from before there was failover name nobody, so their runs replay as they were.
"""

from orchestrator.core.events import ModelFailed, Recovered
from orchestrator.core.manifest import Pins
from orchestrator.core.profile import ModelProfile, Role
from orchestrator.core.state import State

# What is wrong with the request, was refused by ourselves or ends our workers is so with every provider.
OURS = frozenset({"rejected", "refused_by_wall", "script_mismatch", "crashed"})


def base_profile(pins: Pins, state: State, role: Role) -> ModelProfile:
    """Who plays `role` as long as money is no matter: its own profile, or whoever took over from it."""
    own = pins.profile_for(role)
    if own.name not in state.stood_down:
        return own
    return next((one for one in _line(pins, own) if one.name not in state.stood_down), own)


def next_in_line(pins: Pins, state: State, role: Role) -> ModelProfile | None:
    """Who would take over from whoever plays `role` now; None where nobody is left."""
    own, base = pins.profile_for(role), base_profile(pins, state, role)
    out = {own.name, base.name, *state.stood_down, *state.flagged}
    return next((one for one in _line(pins, own) if one.name not in out), None)


def handed_to(pins: Pins, state: State, role: Role, heir: ModelProfile) -> State:
    """The state in which `heir` plays `role`: everybody before it in the line stands down for good."""
    own = pins.profile_for(role)
    names = [profile.name for profile in (own, *_line(pins, own))]
    out = names[: names.index(heir.name)]
    return state.evolve(
        stood_down=tuple(dict.fromkeys((*state.stood_down, *out))),
        counters=state.counters.evolve(model_attempts=0),
    )


def helps(event: ModelFailed | Recovered) -> bool:
    """Whether another provider may do better than the one that failed."""
    return isinstance(event, Recovered) or event.error not in OURS


def _line(pins: Pins, own: ModelProfile) -> list[ModelProfile]:
    """Those who take over from `own`, in order. One that could not be pinned, as for want of a price, is
    passed over."""
    named = {profile.name: profile for profile in pins.profiles}
    return [named[name] for name in own.failover if name in named]
