#!/usr/bin/env python
"""The house's command line."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("INTERLOCK_POOL", "0")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
