"""The load of the fault harness: a tenant with tools of two services, a program that submits, and a reviewer
who answers.

Every run does as many changes as it has steps, each at one of five tools: at the demo company by HTTP tools
(tickets honour keys, messages can be looked up, ledger entries neither) and at an MCP server (bookings honour
keys, notes can be looked up). The reviewer says of a call in doubt what the service's own log says.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Final
from uuid import UUID

import httpx2

from bench.faults.effect_count import Performed, tag_of
from bench.faults.step_model import Job
from bench.faults.tool_service import ToolService
from budgets.actions import change_rates
from budgets.core.rates import Rates
from orchestrator import bundled_content
from orchestrator.core.domain.boundary import ToolGrant
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.core.tools.registration import asked_admission, asked_declaration
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.actions.versions import publish_boundary, publish_workflow
from orchestrator.tools.actions.http_tools import declare_http_tool
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.tool_servers import NewServer, add_server, admit_tool, look_at_server
from orchestrator.tools.queries.tool_servers import offered_by, server_of
from tenancy.actions import create_key, create_tenant
from tenancy.core.reach import KeyLimits, RunReach
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company

TEXT: Final = {"type": "string", "maxLength": 200}
FAMILIES: Final = ("company", "service")
COMMON: Final = {"price_usd": "0", "rate_per_minute": 100_000, "timeout_ms": 5_000}
# Without a gate; a ledger entry waits for a person.
ORDINARY: Final = {"risk": "local_write", "reversibility": "reversible", **COMMON}
PATIENCE_SECONDS: Final = 180.0
# No budget ends a run here.
WIDE: Final = {
    name: Decimal(10) ** 6
    for name in (
        "steps", "model_turns", "tool_calls", "external_calls", "input_tokens", "output_tokens",
        "total_tokens", "wall_clock_seconds", "cost_usd", "retries", "side_effects", "granted_side_effects",
    )
}  # fmt: skip
RETRIED: Final = (429, 500, 502, 503, 504)


def company_tools(origin: str) -> tuple[dict[str, Any], ...]:
    """Return the declarations of the demo company's three changes."""
    return (
        _declared("company.ticket", f"{origin}/tickets", ("order_id", "subject", "text"), recovery="keys"),
        _declared(
            "company.message", f"{origin}/mail/messages", ("to", "subject", "text", "reference"),
            recovery="lookup", addresses=[],
            lookup={
                "path": "/mail/messages", "arguments": {"reference": "/arguments/reference"},
                "found": "/messages",
            },
        ),
        _declared(
            "company.entry", f"{origin}/ledger/entries", ("account", "amount", "memo"),
            risk="network", reversibility="irreversible",
        ),
    )  # fmt: skip


def _declared(name: str, url: str, members: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return {
        "name": name, "description": f"{name}: one change.", **ORDINARY,
        "input_schema": {
            "type": "object", "properties": dict.fromkeys(members, TEXT), "required": list(members)
        },
        "request": {"method": "POST", "url": url, "body": "rest"}, **more,
    }  # fmt: skip


SERVICE_TOOLS: Final[Mapping[str, dict[str, Any]]] = {
    "find_note": {"risk": "read_only", "reversibility": "pure", "recovery": "read_only", **COMMON},
    "book": {**ORDINARY, "recovery": "keys", "timeout_ms": 60_000},
    "note": {
        **ORDINARY, "recovery": "lookup",
        "lookup": {"tool": "find_note", "arguments": {"key": "/key"}, "found": "/note"},
    },
}  # fmt: skip


@dataclass(kw_only=True)
class Workload:
    """The tenant, its keys, what was accepted, and the reviewer's thread."""

    url: str
    company: Company
    service: ToolService
    effects: int
    chance: Random
    jobs: dict[str, Job] = field(default_factory=dict)
    accepted: dict[str, Job] = field(default_factory=dict)
    tenant: UUID | None = None
    _keys: dict[Role, str] = field(default_factory=dict)
    _end: Event = field(default_factory=Event)

    def furnish(self) -> None:
        """Make the tenant, connect both services, and let the tool loop use their tools."""
        made = create_tenant("faults", "Faults")
        seed_tenant(made.id)
        change_rates(made.id, Rates(), by=None, reason="A load.")
        port = self.company.url.rpartition(":")[2]
        places = (f"127.0.0.1:{port}", self.service.place)
        set_places(made.id, places, expected=None, by=None, reason="Services of ours.")
        for declaration in company_tools(self.company.url):
            declare_http_tool(made.id, asked_declaration(declaration), by=None, reason="A load.")
        new = NewServer(slug="service", kind="http", address=self.service.url)
        add_server(made.id, new, by=None, reason="A load.")
        look_at_server(made.id, "service", by=None)
        for name, admission in SERVICE_TOOLS.items():
            with tenant_transaction(made.id):
                seen = next(one.row.seen for one in offered_by(server_of("service")) if one.row.tool == name)
            admit_tool(made.id, "service", name, seen, asked_admission(admission), by=None, reason="A load.")
        self._let_in(made.id)
        limits = KeyLimits(RunReach.TENANT)
        for role in (Role.CLIENT, Role.REVIEWER, Role.OPERATOR):
            self._keys[role] = create_key(made.id, role, limits=limits).clear
        self.tenant = made.id

    @staticmethod
    def _let_in(house: UUID) -> None:
        boundary, spec = (
            bundled_content.load_bundled_boundaries()["tool-loop-default"],
            bundled_content.load_bundled_workflows()["tool-loop"],
        )
        grants = tuple(ToolGrant(name=f"{one}.*", risk_ceiling=Risk.DESTRUCTIVE) for one in FAMILIES)
        wide = boundary.evolve(tools=(*boundary.tools, *grants), budget={**boundary.budget, **WIDE})
        with tenant_transaction(house):
            publish_boundary(house, wide, by=None)
            names = tuple(f"{one}.*" for one in FAMILIES)
            publish_workflow(house, spec.evolve(tools=(*spec.tools, *names)), by=None)

    def submit(self, count: int, kinds: tuple[int, ...] = (), *, effects: int | None = None) -> list[str]:
        """Submit runs, each until its submission is answered; their ids. `kinds` are the tools that they use
        in turn, all of them where none is named."""
        return [self._submit(kinds, effects or self.effects) for _ in range(count)]

    def _submit(self, kinds: tuple[int, ...], effects: int) -> str:
        number = len(self.jobs) + 1
        job = Job.of(number, effects, self.chance, kinds)
        self.jobs[f"x{number:04}"] = job
        body = {"workflow": "tool-loop", "goal": {"objective": job.objective}}
        answer = self.ask("POST", "/tasks", Role.CLIENT, body, once=f"faults-{number}")
        run = str(answer["run"]["id"])
        self.accepted[run] = job
        return run

    def ask(self, method: str, path: str, role: Role, body: Any = None, *, once: str = "") -> dict[str, Any]:
        """Ask the API as a program does: again and again while the web server is away. Raises RuntimeError
        for an answer that is neither a success nor worth another try."""
        headers = {"Authorization": f"Bearer {self._keys[role]}"} | (
            {"Idempotency-Key": once} if once else {}
        )
        until = monotonic() + PATIENCE_SECONDS
        while True:
            status, text = 0, ""
            with suppress(httpx2.HTTPError), httpx2.Client(timeout=10, trust_env=False) as client:
                answer = client.request(method, f"{self.url}/api/v1{path}", json=body, headers=headers)
                status, text = answer.status_code, answer.text
            if 200 <= status < 300:
                found: dict[str, Any] = json.loads(text)
                return found
            first_try_under_way = bool(once) and status == 409
            if not (first_try_under_way or status in (0, *RETRIED)) or monotonic() > until:
                raise RuntimeError(f"{method} {path}: {status} {text[:500]}")
            sleep(0.2)

    def performed(self) -> list[Performed]:
        """Return what both services changed, by their own logs."""
        made = self.service.journal.made()
        for effect in self.company.effects():
            tag = tag_of(json.dumps(effect["body"]))
            made.append(Performed(service=effect["service"], tag=tag, key=str(effect["key"] or "")))
        return made

    def start_reviewer(self) -> Thread:
        """Answer whatever is asked of people, on a thread, until `end_reviewer`."""
        thread = Thread(target=self._review, name="reviewer", daemon=True)
        thread.start()
        return thread

    def end_reviewer(self) -> None:
        """Let the reviewer's thread end."""
        self._end.set()

    def _review(self) -> None:
        while not self._end.wait(0.2):
            with suppress(RuntimeError, httpx2.HTTPError):
                rows = self.ask("GET", "/approvals?status=pending&limit=100", Role.REVIEWER)["results"]
                for row in rows:
                    self._decide(str(row["id"]), str(row["kind"]))

    def _decide(self, request: str, kind: str) -> None:
        shown = self.ask("GET", f"/approvals/{request}", Role.REVIEWER)
        word = "approve"
        if kind == "reconciliation":
            step = tag_of(json.dumps(shown["action"]["arguments"]))
            happened = any(one.tag == step for one in self.performed())
            word = "happened" if happened else "not_happened"
        body = {"decision": word, "packet_digest": shown["packet_digest"]}
        with suppress(RuntimeError):
            self.ask("POST", f"/approvals/{request}/decisions", Role.REVIEWER, body)
