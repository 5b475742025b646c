"""The door for HTTP and WebSockets."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# First: what the routes import needs Django's apps.
_http = get_asgi_application()

from config.live.routing import build_hub, build_live_application  # noqa: E402

HUB = build_hub()
application = build_live_application(_http, HUB)
