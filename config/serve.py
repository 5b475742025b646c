"""`python -m config.serve`: the web process, logging through the house's one log."""

from __future__ import annotations

import os

import django
import uvicorn

from config.checks import refuse_power
from config.env import Environment


def main() -> None:
    """Refuse a powerful database role, then serve until told to stop."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    refuse_power()
    environment = Environment()
    uvicorn.run(
        "config.asgi:application",
        host=environment.host,
        port=environment.port,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
        ws_max_size=64 * 1024,
        server_header=False,
    )


if __name__ == "__main__":
    main()
