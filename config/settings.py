"""Django's settings, drawn from `config.env`. Lower floors read them through `django.conf.settings`."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

from csp.constants import NONCE, NONE, SELF
from kombu import Queue

from config.databases import build_database_settings
from config.env import Environment, data_dir, unwrap_secret
from config.observability import logs

BASE_DIR = Path(__file__).resolve().parent.parent
ENVIRONMENT = Environment()

DEBUG = ENVIRONMENT.debug
# Without a given key every process would sign differently; `config.observability.checks` refuses that
# outside embedded mode.
SECRET_KEY_GIVEN = ENVIRONMENT.secret_key is not None
SECRET_KEY = unwrap_secret(ENVIRONMENT.secret_key) or secrets.token_urlsafe(48)
ALLOWED_HOSTS = [host.strip() for host in ENVIRONMENT.allowed_hosts.split(",") if host.strip()]

INTERLOCK_EMBEDDED = ENVIRONMENT.embedded
INTERLOCK_DATA_DIR = data_dir()
INTERLOCK_WORKER_THREADS = ENVIRONMENT.worker_threads
INTERLOCK_WORKER_NICENESS = ENVIRONMENT.worker_niceness
# Whether a session of the database stays one: not behind a pooler of transactions.
INTERLOCK_DATABASE_SESSIONS = ENVIRONMENT.database_sessions
INTERLOCK_LEASE_SECONDS = ENVIRONMENT.lease_seconds
INTERLOCK_SWEEP_SECONDS = ENVIRONMENT.sweep_seconds
INTERLOCK_CIRCUIT_FAILURES = ENVIRONMENT.circuit_failures
INTERLOCK_CIRCUIT_COOLDOWN_SECONDS = ENVIRONMENT.circuit_cooldown_seconds
INTERLOCK_RATE_PER_MINUTE = ENVIRONMENT.rate_per_minute
# How long a worker keeps one run in hand before others get their turn.
INTERLOCK_SLICE_SECONDS = ENVIRONMENT.slice_seconds
INTERLOCK_VERSION = "0.1.0"
INTERLOCK_HOST = ENVIRONMENT.host
INTERLOCK_PORT = ENVIRONMENT.port
# Where a worker and the web process answer Prometheus on ports of their own (None: nowhere), and what the web
# port asks for (None: it never answers).
INTERLOCK_METRICS_PORT = ENVIRONMENT.metrics_port
INTERLOCK_WEB_METRICS_PORT = ENVIRONMENT.web_metrics_port
INTERLOCK_METRICS_HOST = ENVIRONMENT.metrics_host
INTERLOCK_METRICS_TOKEN = unwrap_secret(ENVIRONMENT.metrics_token)
INTERLOCK_DRAIN_SECONDS = ENVIRONMENT.drain_seconds
INTERLOCK_MODEL = ENVIRONMENT.model
INTERLOCK_CHEAPER_MODEL = ENVIRONMENT.cheaper_model
INTERLOCK_MODEL_STREAMS = ENVIRONMENT.model_streams
INTERLOCK_MODEL_FAILOVER = ENVIRONMENT.model_failover
INTERLOCK_MODEL_PRICE = ENVIRONMENT.model_price
INTERLOCK_MODEL_AT_ONCE = ENVIRONMENT.model_at_once
INTERLOCK_UNKNOWN_PRICE = ENVIRONMENT.unknown_price
INTERLOCK_WORST_CASE_USD_PER_MTOK = ENVIRONMENT.worst_case_usd_per_mtok
INTERLOCK_WORST_CASE_USD_PER_CALL = ENVIRONMENT.worst_case_usd_per_call
INTERLOCK_BUSINESS_RATES = ENVIRONMENT.business_rates
INTERLOCK_DEMO_URL = ENVIRONMENT.demo_url
# The sign-in page of the embedded start offers the demonstration's people, whose password is published.
INTERLOCK_DEMO_ACCOUNTS = ENVIRONMENT.embedded and ENVIRONMENT.demo
INTERLOCK_PRIVATE_PLACES = ENVIRONMENT.private_bound
INTERLOCK_MCP_COMMANDS = ENVIRONMENT.mcp_commands
INTERLOCK_SCRIPT_ISOLATION = ENVIRONMENT.script_isolation
INTERLOCK_DATABASES = ENVIRONMENT.databases
OPENAI_BASE_URL = ENVIRONMENT.openai_base_url
OPENAI_API_KEY = unwrap_secret(ENVIRONMENT.openai_api_key)
ANTHROPIC_API_KEY = unwrap_secret(ENVIRONMENT.anthropic_api_key)
REDIS_URL = unwrap_secret(ENVIRONMENT.redis_url) or "redis://127.0.0.1:6379/0"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.messages",
    "django.contrib.humanize",
    "servestatic.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "channels",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "django_structlog",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_htmx",
    "tenancy",
    "traces",
    "budgets",
    "approvals",
    "orchestrator",
    "config",
]
MIDDLEWARE = [
    "config.observability.metrics.MeasureRequests",
    "django.middleware.security.SecurityMiddleware",
    "config.site.middleware.CompressStatic",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.site.middleware.permissions_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "tenancy.web.middleware.NoteActivity",
    "django_htmx.middleware.HtmxMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "tenancy.web.middleware.LeaveReach",
    "tenancy.web.middleware.RefuseNul",
    "tenancy.web.middleware.ShowRate",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
APPEND_SLASH = False
AUTH_USER_MODEL = "tenancy.Person"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {"user_attributes": ("email", "name")}),
        ("MinimumLengthValidator", {"min_length": 12}),
        ("CommonPasswordValidator", {}),
    )
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "config.site.page_context.build_page_context",
            ]
        },
    }
]

# Threads of the loop, as many of the sweep, one for the heartbeat, and a few for requests. A command has one
# thread and should fail at once, not after a pool's wait.
POOL_SIZE = 2 * ENVIRONMENT.worker_threads + 6
_ADDRESS = unwrap_secret(ENVIRONMENT.database_url)
_NOWHERE = "postgresql://interlock_app@/interlock?host=/nonexistent"
DATABASES = {
    "default": build_database_settings(
        _ADDRESS or _NOWHERE, pool_size=POOL_SIZE if _ADDRESS and ENVIRONMENT.pool else None
    )
}
if ENVIRONMENT.database_owner_url:
    # Only where migrations run; the supervisor keeps this address from web and workers.
    DATABASES["owner"] = build_database_settings(
        ENVIRONMENT.database_owner_url.get_secret_value(), pool_size=None
    )

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

STATIC_URL = "/static/"
STORAGES = {"staticfiles": {"BACKEND": "config.site.static_files.VersionedStaticFiles"}}
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [folder for folder in (BASE_DIR / "static",) if folder.is_dir()]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
# Every reference carries the digest of what it names (config.static), so a browser may keep it.
SERVESTATIC_MAX_AGE = 0 if DEBUG else 31_536_000
SERVESTATIC_ALLOW_ALL_ORIGINS = False

# What the library counts (a password changed, a proof asked again) stands in the database: a restart
# forgets none, and no broker is needed.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "config_cache"}}

CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # An idle WebSocket would be closed every five seconds without a socket timeout (redis-py 8).
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 60}], "prefix": "interlock"},
    }
}

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_TASK_DEFAULT_QUEUE = "runs"
# Runs that somebody waits for do not stand behind those that are merely ready; workers take from both.
CELERY_TASK_QUEUES = (Queue("runs"), Queue("turns"))
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker waits for its broker for ever; the sweep works without it meanwhile.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A message not acknowledged in this time is delivered again; the lease makes the second one harmless.
    "visibility_timeout": 3600,
    "socket_timeout": 30,
    "socket_connect_timeout": 2,
    "global_keyprefix": "interlock:",
    # Posting a wake-up must never make an accepted request wait: the sweep finds the run without it.
    "max_retries": 0,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TIMEZONE = "UTC"

SECURE_SSL_REDIRECT = ENVIRONMENT.behind_https
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENVIRONMENT.behind_https else None
SECURE_HSTS_SECONDS = 31_536_000 if ENVIRONMENT.behind_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = ENVIRONMENT.behind_https
SECURE_HSTS_PRELOAD = ENVIRONMENT.behind_https
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENVIRONMENT.behind_https
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
# A session ends so long after signing in, and so long after the last thing a person did with it.
SESSION_ENGINE = "tenancy.web.session_store"
SESSION_COOKIE_AGE = ENVIRONMENT.session_hours * 3600
INTERLOCK_IDLE_SECONDS = ENVIRONMENT.idle_minutes * 60
CSRF_TRUSTED_ORIGINS = [origin.strip() for origin in ENVIRONMENT.origins.split(",") if origin.strip()]
CSRF_FAILURE_VIEW = "config.site.pages.csrf_failure"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        # The nonce is for the import map alone; no script is inline.
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        # A browser holds the redirect to the provider of identities against this too.
        "form-action": [SELF, *([ENVIRONMENT.oidc_origin] if ENVIRONMENT.oidc_origin else [])],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

DEFAULT_FROM_EMAIL = SERVER_EMAIL = ENVIRONMENT.mail_from
INTERLOCK_CONSOLE_URL = ENVIRONMENT.console_url.rstrip("/")
# Where a command says that the console is; letters say nothing where nobody has said it.
INTERLOCK_ADDRESS = INTERLOCK_CONSOLE_URL or f"http://{ENVIRONMENT.host}:{ENVIRONMENT.port}"
INTERLOCK_SENDS_MAIL = ENVIRONMENT.mails_first_links
globals().update(ENVIRONMENT.mail)

# Who draws a refusal as a page (tenancy.pages).
INTERLOCK_PROBLEM_PAGE = "config.site.pages.render_error_page"
# Who asks for a second factor, once more or for the first time (tenancy.pages).
INTERLOCK_PROOF_PAGE = "config.auth.second_factor.ask_for_factor"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ALLAUTH_TRUSTED_PROXY_COUNT = ENVIRONMENT.proxies
# Tries to sign in are weighed by `config.auth.accounts`: the library's own counts let a stranger keep people
# out.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None}
ACCOUNT_ADAPTER = "config.auth.accounts.Accounts"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
# People are made by administrators, who vouch for the address.
ACCOUNT_EMAIL_VERIFICATION = "none"
MFA_ALLOW_UNVERIFIED_EMAIL = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = LOGIN_URL
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
MFA_ADAPTER = "config.auth.accounts.SecondFactors"
MFA_FORMS = {
    "authenticate": "config.auth.code_forms.CodeForm",
    "reauthenticate": "config.auth.code_forms.CodeAgainForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Interlock"
# Browsers call http://localhost a secure place; the library asks to be told so.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not ENVIRONMENT.behind_https
SOCIALACCOUNT_ADAPTER = "config.auth.accounts.ForeignAccounts"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "APPS": [ENVIRONMENT.oidc_app] if ENVIRONMENT.oidc_app else [],
        "provider_class": "config.auth.oidc.Provider",
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["tenancy.rest.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["tenancy.rest.throttling.PerKey"],
    "DEFAULT_RENDERER_CLASSES": ["config.api.renderers.ExactJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenancy.rest.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "config.api.openapi.Schema",
    "EXCEPTION_HANDLER": "config.api.problems.exception_handler",
    # Accept says the form; an address has one meaning.
    "URL_FORMAT_OVERRIDE": None,
    "COERCE_DECIMAL_TO_STRING": True,
    "UNICODE_JSON": True,
    "STRICT_JSON": True,
}
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "config.api.problems.Handler",
    "EXCEPTION_FORMATTER_CLASS": "config.api.problems.Formatter",
    "ENABLE_IN_DEBUG_FOR_UNHANDLED_EXCEPTIONS": True,
    "ALLOWED_ERROR_STATUS_CODES": [],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Interlock",
    "DESCRIPTION": "Governed runs of language-model agents.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v[0-9]",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    # What a change requires, such as its reason, is said of it too.
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatus": "orchestrator.api.serializers.STATUSES",
        "TerminalCode": "orchestrator.api.serializers.CODES",
        "Mode": "orchestrator.api.serializers.MODES",
        "DeliveryState": "orchestrator.notifications.api.webhook_serializers.STATES",
        "ApprovalStatus": "approvals.api.requests.STATUSES",
        "DecisionKind": "approvals.api.requests.KINDS",
        "CircuitState": "orchestrator.outbound.api.STATES",
        "RiskClass": "tenancy.core.roles.RISKS",
        "RoleEnum": "orchestrator.tenants.api.sign_in_rules.ROLES",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.api.openapi.with_problems",
    ],
}

LOGGING_CONFIG = None
logs.configure_logging(style=ENVIRONMENT.log_format, level=ENVIRONMENT.log_level)
DJANGO_STRUCTLOG_CELERY_ENABLED = True
# A request has one line, when it is over.
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG
