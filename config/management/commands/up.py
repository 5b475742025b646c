"""`manage.py up`: the whole house, one command."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from django.core.management.base import BaseCommand

from config.house import House
from config.supervisor import Journal, StartFailedError, Supervisor


class Command(BaseCommand):
    """Start PostgreSQL, Valkey, web, worker, beat and the demo company; end them with Ctrl-C."""

    help = "Start everything and keep it running; Ctrl-C ends it."
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Exit status 0 after a stop that was asked for, 1 when the start failed."""
        journal = Journal()
        house = House(journal)
        try:
            house.enter()
            steps = house.steps()
        except (StartFailedError, OSError, ValueError) as failure:
            journal.say(str(failure))
            sys.exit(1)
        sys.exit(asyncio.run(_run(house, steps, journal)))


async def _run(house: House, steps: list[Any], journal: Journal) -> int:
    return await Supervisor(journal).run(steps, house.announce)
