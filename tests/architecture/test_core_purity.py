"""Every `core/` keeps the rule, and the rule sees what it must see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.purity import complaints
from tests.servers import ROOT

CORES = sorted(path for path in ROOT.glob("*/core/**/*.py") if path.relative_to(ROOT).parts[0] != "tests")


def test_every_core_is_pure() -> None:
    assert list(complaints(CORES)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import random",
        "from secrets import token_hex",
        "from django.db import models",
        "from tenancy.models import Tenant",
        "import datetime\ndatetime.datetime.now()",
        "import datetime\ndatetime.date.today()",
        "import uuid\nuuid.uuid4()",
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "[x for x in {z for z in y}]",
        "{x: 1 for x in frozenset(y)}",
        "list(set(y))",
        "','.join({'a', 'b'})",
        "found = set()\nfor x in found: pass",
        "def f(names: frozenset[str]) -> None:\n    print([*names])",
        "def f(names: set[str], other) -> None:\n    for x in names - other: pass",
        "class A:\n    scopes: frozenset[str]\ndef f(a):\n    return tuple(a.scopes)",
        "tuple(x for x in a.union(b) | {1})",
    ],
)
def test_a_breach_is_seen(tmp_path: Path, source: str) -> None:
    module = tmp_path / "breach.py"
    module.write_text(source)
    assert list(complaints([module]))


@pytest.mark.parametrize(
    "source",
    [
        "from decimal import Decimal",
        "from traces.core.events.trace_events import Event",
        "sorted({1, 2})",
        "for x in sorted(set(y)): pass",
        "any(x > 1 for x in {1, 2})",
        "frozenset(x for x in {1, 2})",
        "{x for x in {1, 2}}",
        "x in {1, 2}",
        "for x in (1, 2): pass",
        "class A:\n    scopes: frozenset[str]\ndef f(a):\n    return tuple(sorted(a.scopes))",
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, source: str) -> None:
    module = tmp_path / "fine.py"
    module.write_text(source)
    assert list(complaints([module])) == []
