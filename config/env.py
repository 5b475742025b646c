"""Every environment variable that Interlock reads, typed, in one place.

Order of precedence: the process environment, `.env` in the working directory, and last the file
`servers.json`, which `manage.py up` writes to the data folder so that another command (`manage.py key
create`) finds the embedded servers of the running stack.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from budgets.core.statistics.business_cost import Rates
from orchestrator.core.policy.private_hosts import LOOPBACK, AllowedPlaces, read_bound

SERVERS_FILE = "servers.json"


def data_dir() -> Path:
    """Return the folder of all local data: `INTERLOCK_DATA_DIR`, else `.data` next to `manage.py`."""
    given = os.environ.get("INTERLOCK_DATA_DIR")
    return Path(given).absolute() if given else Path(__file__).resolve().parent.parent / ".data"


class _RunningHouse(PydanticBaseSettingsSource):
    """The addresses that the supervisor wrote down, with lower precedence than all explicit settings."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Unused: this source answers as a whole in `__call__`."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the known variables of `servers.json`; nothing if the stack was never started."""
        try:
            found: dict[str, Any] = json.loads((data_dir() / SERVERS_FILE).read_bytes())
        except (FileNotFoundError, PermissionError):
            return {}
        if os.environ.get("DATABASE_URL"):
            # An owner's address must never be paired with a different database.
            found.pop("DATABASE_OWNER_URL", None)
        return found


class Environment(BaseSettings):
    """Typed settings of one process (R-SEC-8: secrets are never shown by `repr`)."""

    # An invalid value is named but not shown: it may be a misplaced secret.
    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True, hide_input_in_errors=True
    )

    database_url: SecretStr | None = Field(None, validation_alias="DATABASE_URL")
    database_owner_url: SecretStr | None = Field(None, validation_alias="DATABASE_OWNER_URL")
    redis_url: SecretStr | None = Field(None, validation_alias="REDIS_URL")

    port: int = Field(8000, ge=1, le=65535, validation_alias="INTERLOCK_PORT")
    host: str = Field("127.0.0.1", validation_alias="INTERLOCK_HOST")
    # Prometheus: the port of a worker, that of the web process, their listening address, and the token that
    # the web port itself requires.
    metrics_port: int | None = Field(None, ge=1, le=65535, validation_alias="INTERLOCK_METRICS_PORT")
    web_metrics_port: int | None = Field(None, ge=1, le=65535, validation_alias="INTERLOCK_WEB_METRICS_PORT")
    metrics_host: str = Field("127.0.0.1", validation_alias="INTERLOCK_METRICS_HOST")
    metrics_token: SecretStr | None = Field(None, min_length=16, validation_alias="INTERLOCK_METRICS_TOKEN")
    allowed_hosts: str = Field("localhost,127.0.0.1,[::1]", validation_alias="INTERLOCK_ALLOWED_HOSTS")
    secret_key: SecretStr | None = Field(None, validation_alias="INTERLOCK_SECRET_KEY")
    # The external address of the console (https://console.example), and the number of proxies in front.
    origins: str = Field("", validation_alias="INTERLOCK_ORIGINS")
    proxies: int = Field(0, ge=0, le=9, validation_alias="INTERLOCK_PROXIES")
    # How long a session lasts after sign-in, and without activity.
    session_hours: int = Field(12, ge=1, le=168, validation_alias="INTERLOCK_SESSION_HOURS")
    idle_minutes: int = Field(60, ge=5, le=1_440, validation_alias="INTERLOCK_IDLE_MINUTES")
    oidc_url: str | None = Field(None, validation_alias="INTERLOCK_OIDC_URL")
    oidc_client_id: str | None = Field(None, validation_alias="INTERLOCK_OIDC_CLIENT_ID")
    oidc_secret: SecretStr | None = Field(None, validation_alias="INTERLOCK_OIDC_SECRET")
    oidc_name: str = Field("Single sign-on", validation_alias="INTERLOCK_OIDC_NAME")
    debug: bool = Field(False, validation_alias="INTERLOCK_DEBUG")
    behind_https: bool = Field(False, validation_alias="INTERLOCK_HTTPS")
    embedded: bool = Field(False, validation_alias="INTERLOCK_EMBEDDED")
    log_format: str = Field("auto", pattern="^(auto|console|json)$", validation_alias="INTERLOCK_LOG_FORMAT")
    log_level: str = Field("INFO", validation_alias="INTERLOCK_LOG_LEVEL")

    pool: bool = Field(True, validation_alias="INTERLOCK_POOL")
    database_sessions: bool = Field(True, validation_alias="INTERLOCK_DATABASE_SESSIONS")
    worker_threads: int = Field(8, ge=1, le=256, validation_alias="INTERLOCK_WORKER_THREADS")
    worker_niceness: int = Field(10, ge=0, le=19, validation_alias="INTERLOCK_WORKER_NICENESS")
    lease_seconds: int = Field(15, ge=3, le=3600, validation_alias="INTERLOCK_LEASE_SECONDS")
    sweep_seconds: int = Field(2, ge=1, le=3600, validation_alias="INTERLOCK_SWEEP_SECONDS")
    slice_seconds: float = Field(10, gt=0, le=600, validation_alias="INTERLOCK_SLICE_SECONDS")
    drain_seconds: int = Field(20, ge=1, le=600, validation_alias="INTERLOCK_DRAIN_SECONDS")

    circuit_failures: int = Field(5, ge=1, le=1_000, validation_alias="INTERLOCK_CIRCUIT_FAILURES")
    circuit_cooldown_seconds: int = Field(
        30, ge=1, le=86_400, validation_alias="INTERLOCK_CIRCUIT_COOLDOWN_SECONDS"
    )

    rate_per_minute: int = Field(1_200, ge=1, le=1_000_000, validation_alias="INTERLOCK_RATE_PER_MINUTE")

    model: str | None = Field(None, validation_alias="INTERLOCK_MODEL")
    cheaper_model: str | None = Field(None, validation_alias="INTERLOCK_CHEAPER_MODEL")
    # For servers that report their usage at the end of a stream; others are charged by Interlock's own count.
    model_streams: bool = Field(False, validation_alias="INTERLOCK_MODEL_STREAMS")
    # If true, the other providers that have a key take over when the first one is unavailable.
    model_failover: bool = Field(True, validation_alias="INTERLOCK_MODEL_FAILOVER")
    # Price of the operator's model, in US$ per million tokens: "0" for a self-hosted model, or input/output
    # as in "0.15/0.60". Unset: the listed price, else unknown.
    model_price: str | None = Field(
        None,
        pattern=r"^\d{1,6}(\.\d{1,9})?(/\d{1,6}(\.\d{1,9})?)?$",
        validation_alias="INTERLOCK_MODEL_PRICE",
    )
    # Maximum number of concurrent calls of the operator's models; further calls are queued. Unset: one if the
    # model runs on this machine or in its network, else unlimited.
    model_at_once: int | None = Field(None, ge=1, le=10_000, validation_alias="INTERLOCK_MODEL_AT_ONCE")
    unknown_price: Literal["worst", "refuse"] = Field("worst", validation_alias="INTERLOCK_UNKNOWN_PRICE")
    worst_case_usd_per_mtok: Decimal = Field(
        Decimal(20), gt=0, validation_alias="INTERLOCK_WORST_CASE_USD_PER_MTOK"
    )
    worst_case_usd_per_call: Decimal = Field(
        Decimal("0.01"),
        gt=0,
        le=10_000,
        decimal_places=9,
        validation_alias="INTERLOCK_WORST_CASE_USD_PER_CALL",
    )
    # Cost of one token, call, GPU second or review to the operator in addition to the charge, as JSON:
    # {"human_review": "4", "api_call": "0.01"}. For one figure that limits nothing.
    business_rates: Rates = Field(default_factory=Rates, validation_alias="INTERLOCK_BUSINESS_RATES")
    openai_base_url: str | None = Field(None, validation_alias="OPENAI_BASE_URL")
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    anthropic_api_key: SecretStr | None = Field(None, validation_alias="ANTHROPIC_API_KEY")
    # smtp://user:password@host (STARTTLS), smtps://…, smtp+plain://…; without one, mails go to the log.
    smtp_url: SecretStr | None = Field(None, validation_alias="INTERLOCK_SMTP_URL")
    mail_from: str = Field("Interlock <interlock@localhost>", validation_alias="INTERLOCK_MAIL_FROM")
    # Address of the console, for links in mails.
    console_url: str = Field("", validation_alias="INTERLOCK_URL")
    # The demonstration of the embedded start: its two tenants, their people, and the demo company.
    demo: bool = Field(True, validation_alias="INTERLOCK_DEMO")
    seed_demo: bool = Field(False, validation_alias="INTERLOCK_SEED_DEMO")
    demo_url: str | None = Field(None, validation_alias="INTERLOCK_DEMO_URL")
    # The commands that tenants may start as tool servers, by name: {"files": ["/usr/bin/files-server"]}.
    mcp_commands: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, validation_alias="INTERLOCK_MCP_COMMANDS"
    )
    # Non-public destinations that tenants may allow: networks, addresses, names, each with or without a port.
    private_places: str | None = Field(None, validation_alias="INTERLOCK_PRIVATE_PLACES")
    # If "preferred", scripts (sandbox.script) may run without bubblewrap where it is unavailable.
    script_isolation: Literal["preferred", "required"] = Field(
        "preferred", validation_alias="INTERLOCK_SCRIPT_ISOLATION"
    )
    # Databases that tools of every tenant may query, by name: {"company": {"reader": "postgresql://…"}}.
    databases: dict[str, dict[Literal["reader", "writer"], str]] = Field(
        default_factory=dict, repr=False, validation_alias="INTERLOCK_DATABASES"
    )

    @field_validator("openai_base_url")
    @classmethod
    def _address_alone(cls, url: str | None) -> str | None:
        """Check that the address carries no user, password, query or fragment.

        Runs are pinned to this address, and every tenant's members can read it, so a key has its own variable
        (R-SEC-8). A query would precede the requested path.

        Raises: ValueError.
        """
        try:
            at = urlsplit(url or "")
        except ValueError:
            # The library's own message would quote the address.
            raise ValueError("this is no address") from None
        if "@" in at.netloc or at.query or at.fragment:
            raise ValueError("an address carries no user, password or query; OPENAI_API_KEY is for the key")
        return url

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order: environment, then `.env`, then the running stack."""
        return init_settings, env_settings, dotenv_settings, _RunningHouse(settings_cls)

    @field_validator("private_places")
    @classmethod
    def _places_alone(cls, text: str | None) -> str | None:
        """Check that every entry can be parsed; otherwise the start fails."""
        read_bound(text or "")
        return text

    @property
    def private_bound(self) -> tuple[AllowedPlaces, ...]:
        """The non-public destinations that tenants may allow.

        The default is this machine if the servers are embedded, else nothing; the operator can override it.
        """
        default = LOOPBACK if self.embedded else ""
        return read_bound(default if self.private_places is None else self.private_places)

    @property
    def oidc_origin(self) -> str | None:
        """Origin of the identity provider, for the content security policy; None if there is no provider."""
        if not self.oidc_app:
            return None
        at = urlsplit(self.oidc_app["settings"]["server_url"])
        return f"{at.scheme}://{at.netloc}"

    @property
    def oidc_app(self) -> dict[str, Any] | None:
        """The identity provider in allauth's format; None if none is configured (R-SEC-2)."""
        if not (self.oidc_url and self.oidc_client_id):
            return None
        return {
            "provider_id": "sso", "name": self.oidc_name, "client_id": self.oidc_client_id,
            "secret": unwrap_secret(self.oidc_secret) or "",
            "settings": {"server_url": self.oidc_url, "oauth_pkce_enabled": True},
        }  # fmt: skip

    @property
    def mail(self) -> dict[str, Any]:
        """Django's settings of the mail server; the console back end if none is configured.

        Raises: ValueError.
        """
        url = unwrap_secret(self.smtp_url)
        if not url:
            return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
        at = urlsplit(url)
        if at.scheme not in {"smtp", "smtps", "smtp+plain"} or not at.hostname:
            raise ValueError("INTERLOCK_SMTP_URL is smtp://, smtps:// or smtp+plain:// and a host")
        return {
            "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend", "EMAIL_HOST": at.hostname,
            "EMAIL_PORT": at.port or {"smtp": 587, "smtps": 465}.get(at.scheme, 25),
            "EMAIL_HOST_USER": unquote(at.username or ""), "EMAIL_HOST_PASSWORD": unquote(at.password or ""),
            "EMAIL_USE_TLS": at.scheme == "smtp", "EMAIL_USE_SSL": at.scheme == "smtps", "EMAIL_TIMEOUT": 10,
        }  # fmt: skip

    @property
    def mails_first_links(self) -> bool:
        """Return whether first-password links are sent by mail.

        That needs a mail server, and a link address that the inviting person does not choose. Without
        `console_url` the link uses the host of the request, and a pattern in the allowed hosts would let the
        inviter choose that host.
        """
        hosts = [host.strip() for host in self.allowed_hosts.split(",")]
        exact = not any(host.startswith((".", "*")) for host in hosts)
        return bool(unwrap_secret(self.smtp_url)) and (bool(self.console_url) or exact)

    @property
    def has_model_key(self) -> bool:
        """Return whether a model other than the scripted one is available (R-TOOL-23)."""
        return bool(self.openai_api_key or self.anthropic_api_key or self.openai_base_url)


def wrong_in(error: ValidationError | SettingsError) -> str | None:
    """Describe the faults of the environment, one line per variable, by name and without its value.

    The result is None if the error concerns another model.
    """
    if isinstance(error, SettingsError):
        # The error names the field of a variable that is not JSON.
        named = [
            str(field.validation_alias)
            for name, field in Environment.model_fields.items()
            if f'"{name}"' in str(error)
        ]
        return "\n".join(f"{name}: this is no JSON" for name in named) or str(error)
    if error.title not in (Environment.__name__, ExplicitSettings.__name__):
        return None
    return "\n".join(
        f"{'.'.join(map(str, found['loc']))}: {found['msg'].removeprefix('Value error, ')}"
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    )


def explain_unreachable_stack(error: Exception) -> str | None:
    """Return advice for a command that finds no running stack.

    The result is None for other errors, or if the database was configured explicitly.
    """
    nobody = any(one in str(error) for one in ("No such file or directory", "Connection refused"))
    if (
        type(error).__name__ != "OperationalError"
        or not nobody
        or ExplicitSettings().database_url is not None
    ):
        return None
    return (
        f"No running Interlock was found by {data_dir()}. Start it with `make up`, or give this command the"
        " INTERLOCK_DATA_DIR that it was started with."
    )


class ExplicitSettings(Environment):
    """Only the explicit settings: the supervisor must not take its own `servers.json` for configuration."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order: environment, then `.env`."""
        return init_settings, env_settings, dotenv_settings


def unwrap_secret(secret: SecretStr | None) -> str | None:
    """Return the text of a secret that may be absent."""
    return secret.get_secret_value() if secret else None
