"""Static files by the digest of what is in them, without a build step.

An address is `/static/css/base.css?v=<digest>`: a new release is asked for at once, an old one never again.
Modules import each other by relative path; the import map of every page leads those to the same addresses.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import orjson
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage

DIGITS = 10


def _compute_file_digest(name: str) -> str:
    found = finders.find(name)
    return hashlib.sha256(Path(found).read_bytes()).hexdigest()[:DIGITS] if isinstance(found, str) else ""


_kept = cache(_compute_file_digest)


class VersionedStaticFiles(StaticFilesStorage):
    """Names a file with its digest; a name nobody has stays bare and is answered 404."""

    def url(self, name: str | None, force: bool = False) -> str:
        """The address of `name`."""
        plain = super().url(name)
        digest = (_compute_file_digest if settings.DEBUG else _kept)(name or "")
        return f"{plain}?v={digest}" if digest else plain


def _build_import_map() -> str:
    storage = VersionedStaticFiles()
    folder = settings.BASE_DIR / "static" / "js"
    names = sorted(f"js/{path.name}" for path in folder.glob("*.js"))
    imports = {StaticFilesStorage.url(storage, name): storage.url(name) for name in names}
    return orjson.dumps({"imports": imports}).decode()


_kept_modules = cache(_build_import_map)


def import_map() -> str:
    """The import map of all first-party modules, as JSON. Nothing in it needs escaping."""
    return _build_import_map() if settings.DEBUG else _kept_modules()
