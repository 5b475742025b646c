"""Connection strings to Django's database dictionaries."""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict


def build_database_settings(
    url: str, *, pool_size: int | None, application: str = "interlock"
) -> dict[str, Any]:
    """One entry of `DATABASES`.

    `pool_size` is the most connections this process may hold at once; None opens one for each use
    (migrations). Without a pool an ASGI server opens a connection for every request.
    """
    parts: dict[str, Any] = dict(conninfo_to_dict(url))
    options: dict[str, Any] = {"application_name": application}
    entry = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": options | parts,
    }
    options = entry["OPTIONS"]
    if pool_size is not None:
        options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 10}
        # Django's default of None switches prepared statements off, even where a cursor asks for one.
        options["prepare_threshold"] = 5
        # What is prepared is found by key, whatever its values: planning it anew each time costs more than
        # running it.
        options["options"] = f"{options.get('options', '')} -c plan_cache_mode=force_generic_plan".strip()
    return entry
