"""Retries of simulated runs."""

from uuid import UUID

from orchestrator.core.admission.checkpoint_retry import build_retry_state, checkpoint_of
from orchestrator.core.domain.manifest import RetryStart
from orchestrator.core.domain.run_state import RunState
from tests.core.orchestrator.simulation import NIL, RUN, Simulation

AGAIN = UUID(int=8)


def retried(run: Simulation, state: RunState) -> Simulation:
    """A retry of `run` from one of its checkpoints, not yet started."""
    began = RetryStart(run=RUN, record=state.version, record_hash=NIL, origin=RUN, by=UUID(int=9), owner=RUN)
    held = run.manifest.evolve(run=AGAIN, began=began)
    found = checkpoint_of(run.graph, state)
    assert isinstance(found, RunState)
    return Simulation(
        graph=run.graph,
        manifest=held,
        state=build_retry_state(held, found),
        now=run.now,
        contents=dict(run.contents),
    )


def checkpoints(run: Simulation) -> list[RunState]:
    """The states after the records at which a retry may begin, oldest first."""
    states = [run.fed[0][0], *(step.after for step in run.transitions)]
    return [state for state in states if isinstance(checkpoint_of(run.graph, state), RunState)]
