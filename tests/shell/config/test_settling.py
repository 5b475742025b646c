"""What the web process has loaded before it serves is left to no collection (R-UI-12)."""

import subprocess
import sys

import pytest

from tests.proves import proves
from tests.servers import ROOT, TestServers

PROGRAM = """
import gc, sys, django
django.setup()
from config.devstack.serve import preload_and_freeze
before = gc.get_freeze_count()
preload_and_freeze()
print(before, gc.get_freeze_count() > 100_000, "orchestrator.console.views.tabs" in sys.modules)"""


@pytest.mark.slow
@proves("R-UI-12", part="no collection walks what lives as long as the process")
def test_what_is_loaded_is_set_apart_before_the_first_page(servers: TestServers) -> None:
    told = {"DJANGO_SETTINGS_MODULE": "config.settings", "INTERLOCK_SECRET_KEY": "k" * 50}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, cwd=ROOT, capture_output=True, text=True, timeout=60,
        env=servers.environment() | told,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "True", "True"]
