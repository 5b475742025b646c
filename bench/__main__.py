"""`python -m bench [name …]`: every measurement, or those named; status 1 where a figure misses its bound."""

import os
import sys
from importlib import import_module

import django

from bench.judging import VERDICTS
from bench.servers import DATABASE, database

NAMES = ("transitions", "live", "pages", "fairness", "estimates", "injection")


def main() -> None:
    """Start the database, then measure."""
    wanted = tuple(sys.argv[1:]) or NAMES
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.exit(f"there is no measurement {unknown[0]!r}; there is: {', '.join(NAMES)}")
    with database() as server, server.connect(DATABASE) as superuser:
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        django.setup()
        for name in wanted:
            print(f"\n{name}")
            import_module(f"bench.{name}").measure(superuser)
    sys.exit(VERDICTS.status)


if __name__ == "__main__":
    main()
