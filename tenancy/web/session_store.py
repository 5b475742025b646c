"""Django session engine that stores browser sessions in `BrowserSession` (R-SEC-11).

Only a digest of the cookie's value is stored. A session ends a set time after the sign-in and a set time
after the person's last activity, both by the database's clock, whatever the cookie says.
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
    """Return the digest under which the session of this cookie is stored."""
    return sha256(key.encode()).digest()


def build_live_session_filter() -> Q:
    """Build the condition of a session that has neither been idle nor lasted too long."""
    lifetime = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    idle = timedelta(seconds=settings.INTERLOCK_IDLE_SECONDS)
    now = ClockTimestamp()
    return Q(started_at__gt=now - Value(lifetime), last_seen_at__gt=now - Value(idle))


class SessionStore(SessionBase):
    """One session. `row` is its database row, once the session was loaded."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        self.row: BrowserSession | None = None

    def load(self) -> dict[str, Any]:
        """Return the session's data; empty, and without a key, if the session has ended."""
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
        """Return whether a session with this key is stored."""
        return BrowserSession.objects.filter(digest=digest_of(session_key)).exists()

    def create(self) -> None:
        """Store the session under a new key."""
        while True:
            self._session_key = self._fresh_key()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return

    def save(self, must_create: bool = False) -> None:
        """Store the data.

        Raises: UpdateError if the session was ended meanwhile; CreateError if `must_create` and the key is
        taken.
        """
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
        """Give the session a new key; its person, its age and the tenants that have ended it are kept.

        Raises: UpdateError if the session was ended meanwhile.
        """
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
        """Delete the session with this key, by default this one."""
        key = session_key or self.session_key
        if key == self.session_key:
            self.row = None
        if key is not None:
            BrowserSession.objects.filter(digest=digest_of(key)).delete()

    @classmethod
    def clear_expired(cls) -> None:
        """Delete the sessions that have ended."""
        BrowserSession.objects.exclude(build_live_session_filter()).delete()

    def _fresh_key(self) -> str:
        key: str = self._get_new_session_key()  # type: ignore[attr-defined]  # Django's own
        return key

    def _mine(self) -> Any:
        return BrowserSession.objects.filter(digest=digest_of(self.session_key or ""))
