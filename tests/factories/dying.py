"""Workers that die at a yield point of the ring: nothing is cleaned up, and the lease stays as it was."""

from orchestrator.worker.run_loop import FaultPoint


class Killed(BaseException):
    """A worker dies: nothing is cleaned up."""


def dies_at(wanted: str, times: int = 1) -> FaultPoint:
    """A fault that kills whoever comes to the point for the nth time."""
    left = [times]

    def fault(point: str) -> None:
        left[0] -= point == wanted
        if left[0] == 0:
            raise Killed(point)

    return fault
