"""The company's running services: their status, their incidents and their restarts.

An incident is set at the control endpoint; a restart ends an incident that a restart can fix. Status, logs
and metrics follow from incidents and restarts alone, so that they are the same on every calendar day.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from demo.errors import Refusal, not_found
from demo.storage.store import Store, format_current_time

Cause = Literal["none", "pool_exhausted", "memory_leak", "bad_deploy"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_PARK: dict[str, Any] = json.loads(Path(__file__).with_name("services.json").read_text("utf-8"))
_SERVICES: dict[str, dict[str, Any]] = {service["name"]: service for service in _PARK["services"]}
_OPENING_HOUR = 9


class RestartBody(BaseModel):
    """The service to restart, and the reason."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    service: Name
    reason: Reason


class Incident(BaseModel):
    """The cause of a service's trouble from now on; `none` ends it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    service: Name
    cause: Cause


class LogsQuery(BaseModel):
    """The number of newest lines to return."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: int = Field(20, ge=1, le=200)


class ServiceFleet:
    """The operations of the running services."""

    def __init__(self, store: Store, today: date) -> None:
        self._store = store
        self._today = today
        with store.open_transaction():
            self.furnish()

    def furnish(self) -> None:
        """Create every service in its initial state, if none is known. Joins the caller's transaction."""
        if self._store.rows("select 1 from services limit 1"):
            return
        for name in _SERVICES:
            self._store.insert("services", name=name, cause=_PARK["incidents"].get(name, "none"), instance=1)

    def list_services(self) -> list[dict[str, Any]]:
        """List every service with its status, in the order in which a customer meets them."""
        shown = ("name", "title", "status", "healthy", "depends_on")
        return [{key: status[key] for key in shown} for status in map(self.status, _SERVICES)]

    def status(self, name: str) -> dict[str, Any]:
        """Return the state of a service.

        Raises: Refusal 404.
        """
        row, service = self._row(name), _get_service_facts(name)
        cause = _PARK["causes"][row["cause"]]
        failing = [other for other in service["depends_on"] if not self.status(other)["healthy"]]
        status = cause["status"]
        if status == "healthy" and failing:
            status = "degraded"
        return {
            "name": name,
            "title": service["title"],
            "status": status,
            "healthy": status == "healthy",
            "version": service["version"],
            "instance": _format_instance_name(row),
            "restarts": row["instance"] - 1,
            "started_at": _format_utc_timestamp(self._compute_start(row)),
            "depends_on": service["depends_on"],
            "failing_dependencies": failing,
        }

    def logs(self, name: str, asked: LogsQuery) -> dict[str, Any]:
        """Return the newest lines of the running instance, oldest first.

        Raises: Refusal 404.
        """
        row, status = self._row(name), self.status(name)
        started = self._compute_start(row)
        said = [("INFO", f"{name} {status['version']} started as {_format_instance_name(row)}")]
        said += [(level, text) for level, text in _PARK["causes"][row["cause"]]["logs"]]
        said += [("WARN", f"calls to {other} fail") for other in status["failing_dependencies"]]
        lines = [
            {
                "at": _format_utc_timestamp(started + timedelta(seconds=7 * number)),
                "level": level,
                "text": text,
            }
            for number, (level, text) in enumerate(said)
        ]
        errors = [text for level, text in said if level == "ERROR"]
        return {
            "name": name,
            "instance": _format_instance_name(row),
            "errors": len(errors),
            "newest_error": errors[-1] if errors else None,
            "lines": lines[-asked.limit :],
        }

    def metrics(self, name: str) -> dict[str, Any]:
        """Return the running instance's figures together with the usual ones.

        Raises: Refusal 404.
        """
        row, service = self._row(name), _get_service_facts(name)
        cause = _PARK["causes"][row["cause"]]
        pool = service["pool"] if cause.get("pool") == "all" else service["pool"] // 4
        memory = service["memory_mb"] * int(cause.get("memory", 1))
        figures = (
            ("latency_p95", "ms", cause.get("p95_ms", service["p95_ms"]), service["p95_ms"]),
            ("error_rate", "percent", Decimal(cause["error_rate"]), Decimal("0.2")),
            ("errors_last_hour", "count", cause["errors"], 0),
            ("connections_in_use", f"of {service['pool']}", pool, service["pool"] // 4),
            ("memory", "MB", memory, service["memory_mb"]),
        )
        found = [
            {"name": title, "unit": unit, "now": str(current), "usual": str(usual)}
            for title, unit, current, usual in figures
        ]
        return {"name": name, "instance": _format_instance_name(row), "metrics": found}

    def restart(self, body: RestartBody, key: str) -> tuple[dict[str, Any], bool]:
        """Restart once per key; the second value is whether this key had been used before.

        Raises: Refusal: 404 no such service, 409 the key with another service or reason.
        """
        with self._store.open_transaction():
            before = self._store.rows("select * from restarts where key = ?", key)
            if before:
                return _replay_restart(before[0], body), True
            name, row = body.service, self._row(body.service)
            cause = "none" if _PARK["causes"][row["cause"]]["heals"] else row["cause"]
            instance = row["instance"] + 1
            self._store.change(
                "update services set cause = ?, instance = ? where name = ?", cause, instance, name
            )
            number = self._store.insert(
                "restarts",
                at=format_current_time(),
                service=name,
                reason=body.reason,
                key=key,
                instance=instance,
            )
            restart = _serialize_restart(self._store.rows("select * from restarts where id = ?", number)[0])
            self._store.log("services", "restart", key=key, reference=name, body=restart)
        return restart, False

    def restarts(self, *, service: str | None, key: str | None) -> list[dict[str, Any]]:
        """List the restarts of a service, or the one of a key, oldest first."""
        query = "select * from restarts where (? = '' or service = ?) and (? = '' or key = ?) order by id"
        values = (service or "", service or "", key or "", key or "")
        return [_serialize_restart(row) for row in self._store.rows(query, *values)]

    def tell(self, incident: Incident) -> None:
        """Set the incident of a service.

        Raises: Refusal 404.
        """
        self._row(incident.service)
        with self._store.open_transaction():
            self._store.change(
                "update services set cause = ? where name = ?", incident.cause, incident.service
            )

    def incidents(self) -> dict[str, str]:
        """Return the cause of each service that has an incident."""
        rows = self._store.rows("select name, cause from services where cause <> 'none' order by name")
        return {row["name"]: row["cause"] for row in rows}

    def _row(self, name: str) -> dict[str, Any]:
        found = self._store.rows("select * from services where name = ?", name)
        if not found:
            raise not_found("service", name)
        return found[0]

    def _compute_start(self, row: dict[str, Any]) -> datetime:
        """Return the start of an instance by the services' clock: one hour of the fixed day per instance."""
        opened = datetime(self._today.year, self._today.month, self._today.day, _OPENING_HOUR, tzinfo=UTC)
        return opened + timedelta(hours=row["instance"] - 1)


def _get_service_facts(name: str) -> dict[str, Any]:
    return _SERVICES[name]


def _format_instance_name(row: dict[str, Any]) -> str:
    return f"{row['name']}-{row['instance']}"


def _format_utc_timestamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _replay_restart(row: dict[str, Any], body: RestartBody) -> dict[str, Any]:
    if (body.service, body.reason) != (row["service"], row["reason"]):
        raise Refusal(409, "key_used_for_another_restart", "This key belongs to another restart.")
    return _serialize_restart(row)


def _serialize_restart(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"RS-{row['id']:06d}",
        "service": row["service"],
        "instance": f"{row['service']}-{row['instance']}",
        "reason": row["reason"],
        "at": row["at"],
        "key": row["key"],
    }
