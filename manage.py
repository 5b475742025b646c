#!/usr/bin/env python
"""The house's command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command; exit status 1 and what is wrong where the environment is."""
    from pydantic import ValidationError  # noqa: PLC0415 - with what was installed, and not before
    from pydantic_settings import SettingsError  # noqa: PLC0415

    from config.env import explain_unreachable_stack, wrong_in  # noqa: PLC0415

    try:
        command()
    except (ValidationError, SettingsError) as error:
        if (wrong := wrong_in(error)) is None:
            raise
        sys.exit(wrong)
    except Exception as error:
        if (wrong := explain_unreachable_stack(error)) is None:
            raise
        sys.exit(wrong)


def command() -> None:
    """`up` alone starts without Django: it knows only processes."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("INTERLOCK_POOL", "0")
    if sys.argv[1:] == ["up"]:
        from config.devstack.stack import run_stack  # noqa: PLC0415 - the other commands need none of it

        sys.exit(run_stack())
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - up needs none of it

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
