"""Code that tries to get out of the sandbox, or to use more than it was given."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from orchestrator.tools.gateways.sandbox import (
    bubblewrap,
    bwrap_arguments,
    monty_scripts,
    resource_monitor,
    seccomp_filter,
)
from orchestrator.tools.gateways.sandbox.limits import Job, JobResult, Limits
from tests.proves import proves

needs_sandbox = pytest.mark.skipif(
    bool(bubblewrap.explain_unavailability()) and not os.environ.get("INTERLOCK_SANDBOX_REQUIRED"),
    reason=bubblewrap.explain_unavailability() or "there is one",
)
SECRET = "a-secret-of-the-process"

# Each line is tried by itself; what did not raise is told.
TRIES = {
    "read a file of the machine": "open('/etc/passwd').read()",
    "read the house's own code": "open({here!r}).read()",
    "list somebody's home": "[name for name in os.listdir('/root') if name != '.pyenv'][0]",
    "see processes": "os.listdir('/proc/self')",
    "read the environment of the house": "[v for v in os.environ.values() if {secret!r} in v][0]",
    "keep a descriptor of the house": "succeeds(os.fstat, range(3, 2048))",
    "read from the standard input": "os.read(0, 1)[0]",
    "write to the system": "open('/usr/lib/x', 'w')",
    "write to the root": "open('/x', 'w')",
    "write to its own program's folder": "open(os.path.dirname(os.__file__) + '/x', 'w')",
    "follow a link out": "os.symlink('/etc/passwd', '/work/a') or open('/work/a').read()",
    "climb out": "open('/work/../etc/passwd').read()",
    "make a device": "os.mknod('/tmp/sda', 0o660 | stat.S_IFBLK, os.makedev(8, 0))",
    "be root": "os.setuid(0)",
    "be root by a program": "subprocess.run(['/usr/bin/su', '-c', 'id'], check=True, stderr=-3)",
    "change its root": "os.chroot('/tmp')",
    "mount something": "libc('mount', b'none', b'/tmp', b'tmpfs', 0, None)",
    "make a user namespace": "libc('unshare', 0x10000000)",
    "watch another process": "libc('ptrace', 16, os.getppid(), None, None)",
    "use memory that nobody counts": "os.memfd_create('x')",
    "share memory that nobody counts": "libc('shmget', 0, 1 << 20, 0o1600)",
    "reach the house by loopback": "socket.create_connection(('127.0.0.1', {port}), 1)",
    "reach it by IPv6": "socket.create_connection(('::1', {port}), 1)",
    "reach it by a name in no folder": "socket.socket(socket.AF_UNIX).connect('\\0{abstract}')",
    "reach it by its socket file": "socket.socket(socket.AF_UNIX).connect({unix!r})",
    "resolve a name": "socket.getaddrinfo('example.com', 80)",
    "send a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    "speak to the machine that runs this machine": "socket.socket(socket.AF_VSOCK)",
    "speak to the kernel": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "see what passes": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "open a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "raise its own limits": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "end what it does not own": "succeeds(lambda pid: pid not in mine and os.kill(pid, 9), range(2, 64))",
}
ALL_OF_THEM = """
import ctypes, json, os, resource, socket, stat, subprocess
def libc(name, *given):
    found = ctypes.CDLL(None, use_errno=True)
    if getattr(found, name)(*given) < 0:
        raise OSError(ctypes.get_errno(), name)
def succeeds(do, values):
    for value in values:
        try:
            if do(value) is not False:
                return
        except OSError:
            pass
    raise OSError
# Its parent is the first program of its own sandbox, and to end that ends itself.
mine = (os.getpid(), os.getppid())
done = []
for name, line in json.load(open('/code/tries.json')).items():
    try:
        eval(line)
        done.append(name)
    except (OSError, IndexError, subprocess.SubprocessError, ValueError):
        pass
print(json.dumps(done))
"""


@pytest.fixture
def reachable(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Places of this process that could be reached if anything could."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        abstract = f"interlock-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as nameless:
            nameless.bind(f"\0{abstract}")
            nameless.listen()
            unix.bind(str(tmp_path / "s"))
            unix.listen()
            yield {"port": tcp.getsockname()[1], "abstract": abstract, "unix": str(tmp_path / "s")}


async def run(code: str, *, more: dict[str, bytes] | None = None, **limits: Any) -> JobResult:
    """A program's end in the sandbox."""
    laid = {"code/main.py": code.encode(), **(more or {})}
    return await bubblewrap.run_sandbox_job(
        Job(argv=("python", "/code/main.py"), files=laid, limits=Limits(**{"seconds": 20.0, **limits}))
    )


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """A process with so many open that those it hands on have high numbers."""
    with ExitStack() as held:
        for _ in range(300):
            held.enter_context(open(os.devnull, "rb"))  # noqa: PTH123
        yield


@needs_sandbox
@pytest.mark.usefixtures("many_descriptors")
@proves("R-TOOL-19", part="sandbox: files, network, processes")
@proves("R-LOOP-21", part="isolation")
@pytest.mark.parametrize("as_root", [True, False])
async def test_nothing_outside_is_reached(
    reachable: dict[str, Any], monkeypatch: pytest.MonkeyPatch, as_root: bool
) -> None:
    if not as_root:
        # The way of a process that is not root: a user namespace of its own.
        monkeypatch.setattr(bwrap_arguments, "fresh_uid", lambda: 0)
    monkeypatch.setenv("INTERLOCK_SECRET_KEY", SECRET)
    known = {"here": __file__, "secret": SECRET, **reachable}
    tries = orjson.dumps({name: line.format(**known) for name, line in TRIES.items()})
    ended = await run(ALL_OF_THEM, more={"code/tries.json": tries})
    assert ended.status == 0, ended.stderr
    assert orjson.loads(ended.stdout) == []


@needs_sandbox
@proves("R-TOOL-19", part="sandbox: limits")
@pytest.mark.parametrize(
    ("code", "limits", "why"),
    [
        ("while True: pass", {"seconds": 0.6}, "timeout"),
        ("import os\nos.fork() or os.setsid()\nimport time\ntime.sleep(60)", {"seconds": 0.6}, "timeout"),
        ("import sys\nwhile True: sys.stdout.write('x' * 4096)", {}, "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 4096)", {}, "output"),
        ("for n in range(10 ** 6): open(f'/tmp/{n}', 'w')", {"files": 100}, "files"),
        ("import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(60)", {}, "crashed"),
        (
            (
                "import os, time\nfor n in 'abcdef':\n    if not os.fork():\n"
                "        held = bytearray(b'x' * 6 * 10**7)\n        break\ntime.sleep(60)"
            ),
            {"memory_bytes": 200_000_000},
            "memory",
        ),
    ],
)
async def test_whoever_uses_too_much_is_ended(code: str, limits: dict[str, Any], why: str) -> None:
    ended = await run(code, **limits)
    assert (ended.why, ended.status) == (why, None)
    assert len(ended.stdout) <= Limits().output_bytes


@needs_sandbox
@proves("R-TOOL-19", part="sandbox: limits of one process")
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = bytearray(10 ** 9)", "MemoryError"),
        ("open('/tmp/x', 'wb').write(b'x' * (17 * 2 ** 20))", "File too large"),
        ("for n in range(9): open(f'/tmp/{n}', 'wb').write(b'x' * (15 * 2 ** 20))", "No space left"),
        ("held = [open('/code/main.py') for _ in range(500)]", "Too many open files"),
    ],
)
async def test_a_limit_is_an_error_to_whoever_meets_it(code: str, said: str) -> None:
    ended = await run(code)
    assert (ended.why, ended.status) == ("ended", 1)
    assert said in ended.stderr.decode()


@needs_sandbox
@proves("R-TOOL-19", part="sandbox: fork bomb")
async def test_a_fork_bomb_ends_with_its_sandbox() -> None:
    bomb = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    # This process has threads and servers of its own by now.
    before = most = resource_monitor.measure_process_tree(os.getpid())[0]
    done = threading.Event()

    def look() -> None:
        nonlocal most
        while not done.wait(0.05):
            most = max(most, resource_monitor.measure_process_tree(os.getpid())[0])

    watch = threading.Thread(target=look)
    watch.start()
    ended = await run(bomb, seconds=2.0)
    done.set()
    watch.join()
    assert ended.why in ("processes", "timeout")
    assert most - before < 60
    names = [one for one in resource_monitor.iter_process_tree(os.getpid()) if one != os.getpid()]
    assert not [one for one in names if "bwrap" in _name(one)]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


@needs_sandbox
async def test_work_is_done_on_the_files_it_is_given() -> None:
    told = await bubblewrap.run_sandbox_job(
        Job(
            argv=("python", "-c", "import kit; open('out', 'w').write(kit.WORD * 2); print(kit.WORD)"),
            files={"work/kit/__init__.py": b"WORD = 'yes'"},
            result="/work/out",
        )
    )
    assert (told.fine, told.stdout, told.result) == (True, b"yes\n", b"yesyes")


@proves("R-LOOP-21", part="no isolation, no run")
async def test_without_a_sandbox_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bubblewrap, "explain_unavailability", lambda: "bubblewrap is not installed on this machine"
    )
    with pytest.raises(bubblewrap.Unavailable, match="not installed"):
        await run("print(1)")


def test_a_machine_whose_system_calls_are_not_known_has_no_filter() -> None:
    assert seccomp_filter.build_seccomp_filter("riscv64") is None
    assert {
        len(seccomp_filter.build_seccomp_filter(name) or b"") % 8 for name in seccomp_filter.MACHINES
    } == {0}


@proves("R-TOOL-19", part="scripts")
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("open('/etc/passwd').read()", "PermissionError"),
        ("open('/tmp/x', 'w').write('x')", "PermissionError"),
        ("import os\nos.listdir('/')", "PermissionError"),
        ("import os\nprint(os.environ)", "not supported"),
        ("import os\nos.system('id')", "no attribute"),
        ("import socket", "ModuleNotFoundError"),
        ("import subprocess", "ModuleNotFoundError"),
        ("import ctypes", "ModuleNotFoundError"),
        ("().__class__.__bases__[0].__subclasses__()", "AttributeError"),
        ("__import__('os')", "unknown"),
        ("x = []\nwhile True: x.append('a' * 10000)", "MemoryError"),
        ("def f(): return f()\nf()", "RecursionError"),
        ("def (", "SyntaxError"),
    ],
)
async def test_a_script_has_no_way_out(code: str, said: str) -> None:
    ended = await monty_scripts.run_script(code)
    assert (ended.why, ended.status) == ("ended", 1)
    assert said in ended.stderr.decode()


async def test_a_script_is_ended_at_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monty_scripts, "SECONDS", 1)
    assert "time limit" in (await monty_scripts.run_script("while True: pass")).stderr.decode()
    assert (await monty_scripts.run_script("while True: print('x' * 1000)")).why == "output"
    assert (
        await monty_scripts.run_script("while True: pass", Limits(seconds=0.3, processes=1))
    ).why == "timeout"


async def test_a_script_tells_what_it_prints_and_the_value_at_its_end() -> None:
    ended = await monty_scripts.run_script("import json\nprint(sum([1, 2, 3]))\njson.loads('{\"a\": [1]}')")
    assert (ended.fine, ended.stdout, ended.stderr, ended.result) == (True, b"6\n", b"", b"{'a': [1]}")
