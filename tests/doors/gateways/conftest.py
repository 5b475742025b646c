"""One effect loop for all gateway tests of a process, as in a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.outbound.gateways.async_executor import EffectLoop


@pytest.fixture(scope="session")
def loop() -> Iterator[EffectLoop]:
    """A running loop."""
    found = EffectLoop()
    yield found
    found.stop()
