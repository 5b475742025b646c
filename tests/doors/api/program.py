"""A program that talks to the API with a key, and the words of its refusals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from uuid import UUID

import orjson
from django.test import Client

from tenancy.actions import create_key
from tenancy.core.reach import KeyLimits, RunReach
from tenancy.core.roles import Role, Scope
from tenancy.models import Person

API = "/api/v1"
PROBLEM = "application/problem+json"


@dataclass(frozen=True, kw_only=True)
class Program:
    """One key's holder. Paths are given after `/api/v1`; a path that names it already is left alone."""

    clear: str = ""
    client: Client = field(default_factory=Client)

    def headers(self, given: dict[str, str]) -> dict[str, str]:
        """With the key, where there is one."""
        return ({"Authorization": f"Bearer {self.clear}"} if self.clear else {}) | given

    def get(
        self, path: str, query: Mapping[str, Any] | None = None, *, headers: dict[str, str] | None = None
    ) -> Any:
        """GET."""
        return self.client.get(whole(path), query, headers=self.headers(headers or {}))

    def post(self, path: str, body: Any = None, *, once: str | None = None) -> Any:
        """POST as JSON, under an Idempotency-Key where `once` says so."""
        headers = {} if once is None else {"Idempotency-Key": once}
        return self.client.post(
            whole(path),
            orjson.dumps({} if body is None else body),
            content_type="application/json",
            headers=self.headers(headers),
        )

    def send(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Any:
        """Any method; all but GET with a JSON body, an empty one where none is given."""
        if method == "get":
            return self.get(path, headers=headers)
        content = orjson.dumps({} if body is None else body)
        given = self.headers(headers or {})
        return self.client.generic(method, whole(path), content, "application/json", headers=given)


def whole(path: str) -> str:
    """The whole path."""
    return path if path.startswith(("/api/", "/livez", "/readyz", "/metrics")) else API + path


def program(
    tenant_id: UUID,
    role: Role,
    *,
    owner: Person | None = None,
    runs: RunReach = RunReach.TENANT,
    workflows: tuple[str, ...] = (),
) -> Program:
    """A program with a fresh key of a role; it reaches the tenant's runs where nothing else is said."""
    return Program(clear=create_key(tenant_id, role, owner=owner, limits=KeyLimits(runs, workflows)).clear)


def narrow_program(tenant_id: UUID, role: Role, *scopes: Scope) -> Program:
    """A program whose key was made with these scopes alone."""
    with mock.patch("tenancy.actions.scopes_of", return_value=scopes):
        return program(tenant_id, role)


def refusal(response: Any) -> tuple[int, str]:
    """Status and code of a response that must be a whole problem document."""
    said = response.json()
    assert response["Content-Type"] == PROBLEM, said
    assert said["status"] == response.status_code
    assert said["type"] == f"urn:interlock:problem:{said['code']}"
    assert said["detail"]
    assert said["title"]
    assert said["remedy"], said
    return response.status_code, said["code"]


def pointers(response: Any) -> list[str]:
    """Which fields a problem names."""
    return [error["pointer"] for error in response.json().get("errors", [])]
