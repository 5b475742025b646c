"""What the outside tells the house: every environment variable it reads, typed, in one place.

Order of precedence: the process environment, `.env` in the working directory, and last the file
`servers.json` which `manage.py up` leaves in the data folder so that another command (`manage.py key
create`) finds the embedded servers of the running house.
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
    """The folder everything the house keeps lives in: `INTERLOCK_DATA_DIR`, else `.data` beside
    `manage.py`.
    """
    given = os.environ.get("INTERLOCK_DATA_DIR")
    return Path(given).absolute() if given else Path(__file__).resolve().parent.parent / ".data"


class _RunningHouse(PydanticBaseSettingsSource):
    """The addresses the supervisor wrote down, under everything said by hand."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Unused: this source answers as a whole in `__call__`."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The known variables of `servers.json`; nothing when the house has never been up."""
        try:
            found: dict[str, Any] = json.loads((data_dir() / SERVERS_FILE).read_bytes())
        except (FileNotFoundError, PermissionError):
            return {}
        if os.environ.get("DATABASE_URL"):
            # An owner's address must never be paired with somebody else's database.
            found.pop("DATABASE_OWNER_URL", None)
        return found


class Environment(BaseSettings):
    """Typed settings of one process (R-SEC-8: secrets are never shown by `repr`)."""

    # A wrong value is named and not shown: it may be a secret that was put in the wrong place.
    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True, hide_input_in_errors=True
    )

    database_url: SecretStr | None = Field(None, validation_alias="DATABASE_URL")
    database_owner_url: SecretStr | None = Field(None, validation_alias="DATABASE_OWNER_URL")
    redis_url: SecretStr | None = Field(None, validation_alias="REDIS_URL")

    port: int = Field(8000, ge=1, le=65535, validation_alias="INTERLOCK_PORT")
    host: str = Field("127.0.0.1", validation_alias="INTERLOCK_HOST")
    # Prometheus: the port of a worker, that of the web process, where both listen, and the token without
    # which the web port itself answers nothing.
    metrics_port: int | None = Field(None, ge=1, le=65535, validation_alias="INTERLOCK_METRICS_PORT")
    web_metrics_port: int | None = Field(None, ge=1, le=65535, validation_alias="INTERLOCK_WEB_METRICS_PORT")
    metrics_host: str = Field("127.0.0.1", validation_alias="INTERLOCK_METRICS_HOST")
    metrics_token: SecretStr | None = Field(None, min_length=16, validation_alias="INTERLOCK_METRICS_TOKEN")
    allowed_hosts: str = Field("localhost,127.0.0.1,[::1]", validation_alias="INTERLOCK_ALLOWED_HOSTS")
    secret_key: SecretStr | None = Field(None, validation_alias="INTERLOCK_SECRET_KEY")
    # Where the console is reached from outside (https://console.example), and how many proxies stand before.
    origins: str = Field("", validation_alias="INTERLOCK_ORIGINS")
    proxies: int = Field(0, ge=0, le=9, validation_alias="INTERLOCK_PROXIES")
    # How long a session lasts after signing in, and without anything being done with it.
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
    # For servers that tell their usage at the end of a stream; others are charged by our own count.
    model_streams: bool = Field(False, validation_alias="INTERLOCK_MODEL_STREAMS")
    # Whether the other providers that have a key take over where the first one cannot be asked.
    model_failover: bool = Field(True, validation_alias="INTERLOCK_MODEL_FAILOVER")
    # What the operator's model costs, in US$ a million tokens: "0" for one that they run themselves, or
    # input/output as in "0.15/0.60". Unsaid: as listed, else unknown.
    model_price: str | None = Field(
        None,
        pattern=r"^\d{1,6}(\.\d{1,9})?(/\d{1,6}(\.\d{1,9})?)?$",
        validation_alias="INTERLOCK_MODEL_PRICE",
    )
    # How many calls at once the operator's models take; what is above it waits in line. Unsaid: one where the
    # model stands on this machine or in its network, else as many as come.
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
    # What one token, call, GPU second or review costs the house beside what it is charged, as JSON:
    # {"human_review": "4", "api_call": "0.01"}. For one figure that limits nothing.
    business_rates: Rates = Field(default_factory=Rates, validation_alias="INTERLOCK_BUSINESS_RATES")
    openai_base_url: str | None = Field(None, validation_alias="OPENAI_BASE_URL")
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    anthropic_api_key: SecretStr | None = Field(None, validation_alias="ANTHROPIC_API_KEY")
    # smtp://user:password@host (STARTTLS), smtps://…, smtp+plain://…; without one letters go to the log.
    smtp_url: SecretStr | None = Field(None, validation_alias="INTERLOCK_SMTP_URL")
    mail_from: str = Field("Interlock <interlock@localhost>", validation_alias="INTERLOCK_MAIL_FROM")
    # How people reach the console, for links in letters.
    console_url: str = Field("", validation_alias="INTERLOCK_URL")
    # The demonstration of the embedded start: its two tenants, their people, and the demo company.
    demo: bool = Field(True, validation_alias="INTERLOCK_DEMO")
    seed_demo: bool = Field(False, validation_alias="INTERLOCK_SEED_DEMO")
    demo_url: str | None = Field(None, validation_alias="INTERLOCK_DEMO_URL")
    # The commands that tenants may start as tool servers, by name: {"files": ["/usr/bin/files-server"]}.
    mcp_commands: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, validation_alias="INTERLOCK_MCP_COMMANDS"
    )
    # What tenants may open of what is not public: networks, addresses, names, each with a port or without.
    private_places: str | None = Field(None, validation_alias="INTERLOCK_PRIVATE_PLACES")
    # Whether scripts (sandbox.script) may run by their interpreter alone where bubblewrap cannot be used.
    script_isolation: Literal["preferred", "required"] = Field(
        "preferred", validation_alias="INTERLOCK_SCRIPT_ISOLATION"
    )
    # Databases that tools of every tenant may ask, by name: {"company": {"reader": "postgresql://…"}}.
    databases: dict[str, dict[Literal["reader", "writer"], str]] = Field(
        default_factory=dict, repr=False, validation_alias="INTERLOCK_DATABASES"
    )

    @field_validator("openai_base_url")
    @classmethod
    def _address_alone(cls, url: str | None) -> str | None:
        """Runs are pinned to this address, and every tenant's people read it: a key has a variable of its own
        (R-SEC-8). What follows a `?` would stand before the path that is asked for."""
        try:
            at = urlsplit(url or "")
        except ValueError:
            # The library's own words would quote it.
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
        """Environment, then `.env`, then the running house."""
        return init_settings, env_settings, dotenv_settings, _RunningHouse(settings_cls)

    @field_validator("private_places")
    @classmethod
    def _places_alone(cls, text: str | None) -> str | None:
        """Entries that can be read, or the start ends here."""
        read_bound(text or "")
        return text

    @property
    def private_bound(self) -> tuple[AllowedPlaces, ...]:
        """What tenants may open of what is not public: of this machine alone where the servers are embedded,
        else nothing, unless the operator says otherwise."""
        default = LOOPBACK if self.embedded else ""
        return read_bound(default if self.private_places is None else self.private_places)

    @property
    def oidc_origin(self) -> str | None:
        """Where the provider of identities stands, for the content security policy."""
        if not self.oidc_app:
            return None
        at = urlsplit(self.oidc_app["settings"]["server_url"])
        return f"{at.scheme}://{at.netloc}"

    @property
    def oidc_app(self) -> dict[str, Any] | None:
        """The provider of identities as allauth wants it, or None where none is configured (R-SEC-2)."""
        if not (self.oidc_url and self.oidc_client_id):
            return None
        return {
            "provider_id": "sso", "name": self.oidc_name, "client_id": self.oidc_client_id,
            "secret": unwrap_secret(self.oidc_secret) or "",
            "settings": {"server_url": self.oidc_url, "oauth_pkce_enabled": True},
        }  # fmt: skip

    @property
    def mail(self) -> dict[str, Any]:
        """Django's settings of the mail server; the console's back end where none is given. Raises
        ValueError."""
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
        """Whether the link for a first password goes by letter: there is a mail server, and the letter leads
        to an address that whoever invites does not choose. Without `console_url` it is the one that they
        asked at, which a pattern among the allowed hosts would let them make one of their own."""
        hosts = [host.strip() for host in self.allowed_hosts.split(",")]
        exact = not any(host.startswith((".", "*")) for host in hosts)
        return bool(unwrap_secret(self.smtp_url)) and (bool(self.console_url) or exact)

    @property
    def has_model_key(self) -> bool:
        """Whether some model other than the scripted one can be asked (R-TOOL-23)."""
        return bool(self.openai_api_key or self.anthropic_api_key or self.openai_base_url)


def wrong_in(error: ValidationError | SettingsError) -> str | None:
    """What is wrong with the environment: a line for each variable, by its name and without its value. None
    where it is something else."""
    if isinstance(error, SettingsError):
        # It names the field of a variable that is no JSON.
        named = [
            str(field.validation_alias)
            for name, field in Environment.model_fields.items()
            if f'"{name}"' in str(error)
        ]
        return "\n".join(f"{name}: this is no JSON" for name in named) or str(error)
    if error.title not in (Environment.__name__, Given.__name__):
        return None
    return "\n".join(
        f"{'.'.join(map(str, found['loc']))}: {found['msg'].removeprefix('Value error, ')}"
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    )


def explain_unreachable_stack(error: Exception) -> str | None:
    """What to do where a command finds no running house to talk to. None where it is something else, or where
    the database was named by hand."""
    nobody = any(one in str(error) for one in ("No such file or directory", "Connection refused"))
    if type(error).__name__ != "OperationalError" or not nobody or Given().database_url is not None:
        return None
    return (
        f"No running Interlock was found by {data_dir()}. Start it with `make up`, or give this command the"
        " INTERLOCK_DATA_DIR that it was started with."
    )


class Given(Environment):
    """What was said by hand alone: the supervisor must not take its own last notes for an order."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment and `.env`."""
        return init_settings, env_settings, dotenv_settings


def unwrap_secret(secret: SecretStr | None) -> str | None:
    """The text of a secret that may be absent."""
    return secret.get_secret_value() if secret else None
