"""Where browsers' sessions are kept: Django's session engine on `BrowserSession` (R-SEC-11).

The cookie's value is stored nowhere, only its digest. A session ends a set time after its person signed in
and a set time after the last thing they did with it, both by the database's clock, whatever the cookie says.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.db import IntegrityError, transaction
from django.db.models import Q, Value

from tenancy.db.clock import database_now
from tenancy.models import BrowserSession
from tenancy.queries import ClockTimestamp


def digest_of(key: str) -> bytes:
    """The digest under which the session of this cookie is found."""
    return sha256(key.encode()).digest()


def build_live_session_filter() -> Q:
    """The condition of a session that has neither been idle nor lasted too long."""
    lifetime = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    idle = timedelta(seconds=settings.INTERLOCK_IDLE_SECONDS)
    now = ClockTimestamp()
    return Q(started_at__gt=now - Value(lifetime), last_seen_at__gt=now - Value(idle))


class SessionStore(SessionBase):
    """One session. `row` is what the database has of it, once it was loaded."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        self.row: BrowserSession | None = None

    def load(self) -> dict[str, Any]:
        """The session's data; nothing, and no key, where it has ended."""
        key = self.session_key
        self.row = (
            BrowserSession.objects.filter(build_live_session_filter(), digest=digest_of(key)).first()
            if key
            else None
        )
        if self.row is None:
            self._session_key = None
            return {}
        return self.decode(self.row.data)

    def exists(self, session_key: str) -> bool:
        """Whether a session of this key is kept."""
        return BrowserSession.objects.filter(digest=digest_of(session_key)).exists()

    def create(self) -> None:
        """Keep it under a new key."""
        while True:
            self._session_key = self._fresh_key()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        """Keep the data. Raises UpdateError where the session was ended meanwhile."""
        if self.session_key is None:
            self.create()
            return
        data: dict[str, Any] = self._get_session(no_load=must_create)  # type: ignore[attr-defined]  # Django's own
        kept = {"data": self.encode(data), "person_id": data.get(SESSION_KEY)}
        if not must_create:
            if not self._mine().update(**kept):
                raise UpdateError
            return
        now = database_now()
        try:
            with transaction.atomic():
                self.row = BrowserSession.objects.create(
                    digest=digest_of(self.session_key), started_at=now, last_seen_at=now, **kept
                )
        except IntegrityError:
            raise CreateError from None

    def cycle_key(self) -> None:
        """Give the session another key and keep what it is: its person, its age, where it was ended."""
        data = self._session  # type: ignore[attr-defined]  # Django's own
        if self.session_key is None or self.row is None:
            self.create()
            self._session_cache = data
            return
        fresh = self._fresh_key()
        if not self._mine().update(digest=digest_of(fresh)):
            raise UpdateError
        self._session_key = fresh
        self.modified = True

    def delete(self, session_key: str | None = None) -> None:
        """End it."""
        key = session_key or self.session_key
        if key == self.session_key:
            self.row = None
        if key is not None:
            BrowserSession.objects.filter(digest=digest_of(key)).delete()

    @classmethod
    def clear_expired(cls) -> None:
        """Delete what has ended."""
        BrowserSession.objects.exclude(build_live_session_filter()).delete()

    def _fresh_key(self) -> str:
        key: str = self._get_new_session_key()  # type: ignore[attr-defined]  # Django's own
        return key

    def _mine(self) -> Any:
        return BrowserSession.objects.filter(digest=digest_of(self.session_key or ""))
