"""`python -m bench [name …]`: every measurement, or those named; status 1 where a figure misses its bound."""

import os
import sys
from importlib import import_module

import django

from bench.servers import DATABASE, database
from bench.thresholds import VERDICTS

SERVED = ("transitions", "pipeline", "live", "pages", "fairness", "estimates", "injection")
# Start what they need themselves: `first` a house of its own, as a person does.
ALONE = ("first", "scripts")
NAMES = ALONE + SERVED


def main() -> None:
    """What starts a house of its own first, unpinned; then the database, and what is measured on it."""
    wanted = tuple(sys.argv[1:]) or NAMES
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.exit(f"there is no measurement {unknown[0]!r}; there is: {', '.join(NAMES)}")
    for name in wanted:
        if name in ALONE:
            _measure(name)
    if served := [name for name in wanted if name in SERVED]:
        _on_a_database(served)
    sys.exit(VERDICTS.status)


def _on_a_database(wanted: list[str]) -> None:
    with database() as server, server.connect(DATABASE) as superuser:
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        django.setup()
        for name in wanted:
            _measure(name, superuser)


def _measure(name: str, *given: object) -> None:
    print(f"\n{name}")
    import_module(f"bench.{name}").measure(*given)


if __name__ == "__main__":
    main()
