"""What every page has around it: navigation with what waits, the person's preferences, the build."""

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
    """How a person likes it, kept in cookies: it must be known before the first byte, signed in or not."""

    theme: str = "system"
    density: str = "comfortable"
    keys: bool = True

    @classmethod
    def of(cls, request: HttpRequest) -> Preferences:
        """What the cookies say; nonsense counts as nothing said."""
        theme, density = request.COOKIES.get("theme", ""), request.COOKIES.get("density", "")
        return cls(
            theme if theme in THEMES else "system",
            density if density in DENSITIES else "comfortable",
            request.COOKIES.get("keys") != "off",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A place of the navigation."""

    name: str
    word: str
    url: str
    key: str = ""
    here: bool = False
    count: int = 0


# name, word, keys, scope it needs
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
    """The address called `name`, or None where no floor has such a page."""
    try:
        found: str = reverse(name)
    except NoReverseMatch:
        return None
    # The API's addresses have names too; pages come later and win.
    return None if found.startswith("/api/") else found


class Shell:
    """Lazily, so that an answer without a page pays for nothing."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.preferences = Preferences.of(request)
        self.version: str = settings.INTERLOCK_VERSION
        self.member: Member | None = member_of(request) if hasattr(request, "user") else None
        # Whoever lacks a second factor that the tenant asks for sees nothing of it yet.
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
        """Whether the person administers the platform: their menu leads to it."""
        return self.member is not None and is_platform_admin(self.member.person.id)

    @property
    def single_sign_on(self) -> bool:
        """Whether a provider of identities is configured, so that people have accounts of it to look at."""
        return bool(settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"])

    @property
    def demonstration(self) -> tuple[tuple[str, str], ...]:
        """The demonstration's people, each with their role, where anybody may sign in as one of them."""
        if not settings.INTERLOCK_DEMO_ACCOUNTS:
            return ()
        return tuple((f"{title}@{HOUSES[0][0]}.example", role.value) for title, role, _queues in CAST)

    @property
    def demonstration_password(self) -> str:
        """The published password of the demonstration's people."""
        return PASSWORD

    @property
    def tenant_here(self) -> bool:
        """Whether this is one of the tenant's own pages."""
        return any(link.here for link in self.tenant_places)


def waiting_for(member: Member) -> int:
    """How many requests wait for this member, as their inbox counts them, at most a hundred."""
    with tenant_transaction(member.tenant.id):
        return requests_for(decider_of(member))[:MOST_COUNTED].count()


def build_page_context(request: HttpRequest) -> dict[str, Any]:
    """The context processor: `shell` and `member` in every template."""
    drawn: Any = SimpleLazyObject(lambda: Shell(request))
    return {"shell": drawn, "member": SimpleLazyObject(lambda: drawn.member)}
