"""Scripts in the sandbox of the operating system: what a hole in their interpreter would lead to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.checks import Error
from pytest_django.fixtures import Settings

from config.observability.checks import isolation_of_scripts
from orchestrator.tools.gateways.availability import list_missing_dependencies, missing_isolation
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.gateways.sandbox import bubblewrap, bwrap_arguments, monty_scripts
from tests.doors.gateways.test_sandbox import ALL_OF_THEM, SECRET, TRIES, needs_sandbox
from tests.doors.gateways.test_sandbox import reachable as reachable
from tests.proves import proves

NONE_HERE = "bubblewrap is not installed on this machine"
# An interpreter whose restrictions do not hold at all: it runs every script as whole Python.
BROKEN = "#!{python} -I\nimport sys\nexec(open(sys.argv[-1]).read(), {{'__name__': '__main__'}})\n"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter of scripts, broken."""
    program = tmp_path / "monty"
    program.write_text(BROKEN.format(python=bwrap_arguments.resolve_interpreter_path()))
    program.chmod(0o755)
    monkeypatch.setattr(monty_scripts, "_find_program", lambda: program)
    return program


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap."""
    # Tools hold on to what tells them apart when they are loaded.
    shipped_tools()
    monkeypatch.setattr(bubblewrap, "explain_unavailability", lambda: NONE_HERE)


def every_try(known: dict[str, Any]) -> str:
    """A script that tries every way out and prints those that led anywhere."""
    # Another program is one process more than a script may have, which has a test of its own.
    lines = {name: line for name, line in TRIES.items() if "subprocess" not in line}
    tries = {name: line.format(**known) for name, line in lines.items()}
    return ALL_OF_THEM.replace("json.load(open('/code/tries.json'))", repr(tries))


@needs_sandbox
@pytest.mark.usefixtures("broken")
@proves("R-TOOL-19", part="script whose interpreter is broken")
@pytest.mark.parametrize("as_root", [True, False])
async def test_script_of_a_broken_interpreter_reaches_nothing_outside(
    reachable: dict[str, Any], monkeypatch: pytest.MonkeyPatch, as_root: bool
) -> None:
    if not as_root:
        monkeypatch.setattr(bwrap_arguments, "fresh_uid", lambda: 0)
    monkeypatch.setenv("INTERLOCK_SECRET_KEY", SECRET)
    ended = await monty_scripts.run_script(every_try({"here": __file__, "secret": SECRET, **reachable}))
    assert ended.status == 0, ended.stderr
    assert orjson.loads(ended.stdout) == []


@needs_sandbox
@pytest.mark.usefixtures("broken")
@proves("R-TOOL-19", part="script whose interpreter is broken: bounds")
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = bytearray(2 * 10 ** 9)", "MemoryError"),
        ("import os\nfor n in range(3): os.fork()", "BlockingIOError"),
        ("import threading\nfor n in range(3): threading.Thread(target=input).start()", "can't start new"),
        ("held = [open('/code/script.py') for _ in range(500)]", "Too many open files"),
        ("open('/work/x', 'wb').write(b'x' * (17 * 2 ** 20))", "File too large"),
    ],
)
async def test_script_of_a_broken_interpreter_is_refused_more_than_it_may_have(code: str, said: str) -> None:
    ended = await monty_scripts.run_script(code)
    assert (ended.why, ended.status) == ("ended", 1)
    assert said in ended.stderr.decode()


@needs_sandbox
@pytest.mark.usefixtures("broken")
@proves("R-TOOL-19", part="script whose interpreter is broken: time and memory")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time\ntime.sleep(60)", "timeout"),
        ("import time\nheld = bytearray(b'x' * 4 * 10 ** 8)\ntime.sleep(60)", "memory"),
        ("while True: print('x' * 4096)", "output"),
    ],
)
async def test_script_of_a_broken_interpreter_is_ended_at_its_bounds(code: str, why: str) -> None:
    ended = await monty_scripts.run_script(code, replace(monty_scripts.LIMITS, seconds=2.0))
    assert (ended.why, ended.status) == (why, None)


@pytest.mark.usefixtures("broken", "no_sandbox")
async def test_same_script_without_a_sandbox_reads_the_machine() -> None:
    """What the tests above would see if the sandbox held nothing back."""
    ended = await monty_scripts.run_script("print(open('/etc/passwd').read())")
    assert b"root:" in ended.stdout


@needs_sandbox
@proves("R-TOOL-19", part="scripts")
@pytest.mark.parametrize("way", ["run_script", "run_bare"])
@pytest.mark.parametrize(
    "code",
    [
        "''.__class__.__mro__[1].__subclasses__()",
        "(lambda: 0).__globals__",
        "(x for x in ()).gi_frame.f_back.f_globals",
        "getattr((), '__cl' + 'ass__').__bases__",
        "'{0.__class__.__init__.__globals__}'.format(1)",
        "type(type)('x', (), {}).__subclasses__(object)",
        "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_globals",
        "eval('__import__(\"os\")')",
        "exec('import socket')",
        "compile('1', '', 'exec')",
        "globals()['__builtins__']",
        "vars(print)",
        "import sys\nsys.modules['os']",
        "import json\njson.__loader__",
        "import re\nre.__dict__['enum'].sys",
        "breakpoint()",
        "input()",
    ],
)
async def test_trick_of_the_language_ends_in_an_error(way: str, code: str) -> None:
    ended = await getattr(monty_scripts, way)(code)
    assert (ended.why, ended.status, ended.result) == ("ended", 1, None)


@pytest.mark.usefixtures("no_sandbox")
@proves("R-LOOP-21", part="a machine without isolation")
async def test_script_without_a_sandbox_runs_by_its_interpreter_alone_and_pages_say_so() -> None:
    ended = await monty_scripts.run_script("2 + 2")
    assert (ended.fine, ended.result) == (True, b"4")
    assert missing_isolation() == {"sandbox.script": NONE_HERE}
    assert "sandbox.script" not in list_missing_dependencies()


@pytest.mark.usefixtures("no_sandbox")
@proves("R-LOOP-21", part="isolation that the operator insists on")
async def test_script_without_a_sandbox_is_refused_where_the_operator_insists(
    settings: Settings,
) -> None:
    settings.INTERLOCK_SCRIPT_ISOLATION = "required"
    with pytest.raises(bubblewrap.Unavailable, match="INTERLOCK_SCRIPT_ISOLATION"):
        await monty_scripts.run_script("2 + 2")
    assert missing_isolation() == {}
    assert NONE_HERE in list_missing_dependencies()["sandbox.script"]


@needs_sandbox
async def test_script_with_a_sandbox_runs_where_the_operator_insists(settings: Settings) -> None:
    settings.INTERLOCK_SCRIPT_ISOLATION = "required"
    assert (await monty_scripts.run_script("2 + 2")).result == b"4"
    assert (missing_isolation(), isolation_of_scripts()) == ({}, [])


@pytest.mark.usefixtures("no_sandbox")
@pytest.mark.parametrize(
    ("isolation", "said"),
    [("preferred", "runs without the system's isolation"), ("required", "sandbox.script is refused")],
)
def test_check_says_where_scripts_are_not_isolated(settings: Settings, isolation: str, said: str) -> None:
    settings.INTERLOCK_SCRIPT_ISOLATION = isolation
    (found,) = isolation_of_scripts()
    assert (found.id, isinstance(found, Error)) == ("interlock.W001", False)
    assert said in found.msg
    assert NONE_HERE in found.msg
