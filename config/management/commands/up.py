"""`manage.py up`: the whole house, one command."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from config.devstack.stack import run_stack


class Command(BaseCommand):
    """Start PostgreSQL, Valkey, web, worker, beat and the demo company; end them with Ctrl-C."""

    help = "Start everything and keep it running; Ctrl-C ends it."
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Exit status 0 after a stop that was asked for, 1 when the start failed."""
        sys.exit(run_stack())
