"""The frame of every page: navigation with pending requests, the person's preferences, the version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from approvals.queries.inbox import waiting_for as requests_for
from approvals.queries.people import decider_of
from tenancy.core.demo_users import CAST, HOUSES, PASSWORD
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.platform_admins import is_platform_admin
from tenancy.web.page_auth import Member, member_of

MOST_COUNTED = 100
THEMES = ("system", "light", "dark")
DENSITIES = ("comfortable", "compact")


@dataclass(frozen=True, slots=True)
class Preferences:
    """A person's display preferences, stored in cookies.

    They must be known before the first byte of a page, with or without a sign-in.
    """

    theme: str = "system"
    density: str = "comfortable"
    keys: bool = True

    @classmethod
    def of(cls, request: HttpRequest) -> Preferences:
        """Read the preferences from the cookies; an invalid value counts as unset."""
        theme, density = request.COOKIES.get("theme", ""), request.COOKIES.get("density", "")
        return cls(
            theme if theme in THEMES else "system",
            density if density in DENSITIES else "comfortable",
            request.COOKIES.get("keys") != "off",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One entry of the navigation."""

    name: str
    word: str
    url: str
    key: str = ""
    here: bool = False
    count: int = 0


# name, label, keys, required scope
PLACES = (
    ("overview", "Overview", "g o", Scope.READ),
    ("runs", "Runs", "g r", Scope.READ),
    ("approvals", "Approvals", "g a", Scope.READ),
    ("budgets", "Budgets", "g b", Scope.READ),
    ("tools", "Tools", "g t", Scope.READ),
    ("workflows", "Workflows", "g w", Scope.READ),
    ("system", "System", "g s", Scope.READ),
)
TENANT_PLACES = (
    ("people", "People", "g p", Scope.INSPECT),
    ("queues", "Queues", "g q", Scope.INSPECT),
    ("sign-ins", "Sign-ins", "g i", Scope.ADMIN),
    ("keys", "API keys", "g k", Scope.INSPECT),
    ("webhooks", "Webhooks", "g h", Scope.ADMIN),
    ("audit", "Audit log", "g l", Scope.INSPECT),
)
Places = tuple[tuple[str, str, str, Scope], ...]


def resolve_page_url(name: str) -> str | None:
    """Return the URL named `name`, or None if no package has such a page."""
    try:
        found: str = reverse(name)
    except NoReverseMatch:
        return None
    # The API's URLs have names too; pages are registered later and take precedence.
    return None if found.startswith("/api/") else found


class Shell:
    """The frame of a page. It is built lazily, so that an answer without a page costs nothing."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.preferences = Preferences.of(request)
        self.version: str = settings.INTERLOCK_VERSION
        self.member: Member | None = member_of(request) if hasattr(request, "user") else None
        # A person without the second factor that the tenant requires sees no content yet.
        self._inside = self.member is not None and self.member.lack is None
        self.pending = waiting_for(self.member) if self.member is not None and self._inside else 0
        self.places = tuple(self._links(PLACES))
        self.tenant_places = tuple(self._links(TENANT_PLACES))

    def _links(self, places: Places) -> Iterator[Link]:
        for name, word, key, scope in places:
            url = resolve_page_url(name)
            if url is None or self.member is None or not self._inside or scope not in self.member.scopes:
                continue
            here = self._request.path == url or (url != "/" and self._request.path.startswith(f"{url}/"))
            count = self.pending if name == "approvals" else 0
            yield Link(name=name, word=word, url=url, key=key, here=here, count=count)

    @property
    def is_platform_admin(self) -> bool:
        """True if the person administers the platform, so that the menu links to its pages."""
        return self.member is not None and is_platform_admin(self.member.person.id)

    @property
    def single_sign_on(self) -> bool:
        """True if an identity provider is configured, so that people have external accounts to view."""
        return bool(settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"])

    @property
    def demonstration(self) -> tuple[tuple[str, str], ...]:
        """The demonstration's people with their roles, if sign-in as one of them is open to all."""
        if not settings.INTERLOCK_DEMO_ACCOUNTS:
            return ()
        return tuple((f"{title}@{HOUSES[0][0]}.example", role.value) for title, role, _queues in CAST)

    @property
    def demonstration_password(self) -> str:
        """The published password of the demonstration's people."""
        return PASSWORD

    @property
    def tenant_here(self) -> bool:
        """True if this is one of the tenant's own pages."""
        return any(link.here for link in self.tenant_places)


def waiting_for(member: Member) -> int:
    """Count the requests that wait for this member, as in their inbox, at most a hundred."""
    with tenant_transaction(member.tenant.id):
        return requests_for(decider_of(member))[:MOST_COUNTED].count()


def build_page_context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: provide `shell` and `member` to every template."""
    drawn: Any = SimpleLazyObject(lambda: Shell(request))
    return {"shell": drawn, "member": SimpleLazyObject(lambda: drawn.member)}
