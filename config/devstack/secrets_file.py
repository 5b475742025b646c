"""The secrets of the embedded servers: made once, kept in the data folder, readable by their owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


def _generate_secret() -> str:
    return secrets.token_urlsafe(32)


class Secrets(BaseModel):
    """Passwords of the database roles, and the key Django signs with."""

    model_config = ConfigDict(frozen=True)

    superuser: str = Field(default_factory=_generate_secret, repr=False)
    owner: str = Field(default_factory=_generate_secret, repr=False)
    app: str = Field(default_factory=_generate_secret, repr=False)
    auditor: str = Field(default_factory=_generate_secret, repr=False)
    secret_key: str = Field(default_factory=lambda: secrets.token_urlsafe(60), repr=False)


def write_private(path: Path, text: str) -> None:
    """Replace `path` whole with `text`, mode 0600, without a moment in which others could read it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


def secrets_in(folder: Path) -> Secrets:
    """The secrets kept in `folder`, made at the first call."""
    path = folder / "secrets.json"
    try:
        return Secrets.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        made = Secrets()
        write_private(path, made.model_dump_json())
        return made
