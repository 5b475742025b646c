"""A place with nothing around it: a copy of the tree, a bare environment, and no network but this machine."""

import ctypes
import fcntl
import shutil
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.servers import ROOT

# What a process needs to run at all, and where this machine has its browser.
KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "INTERLOCK_CHROMIUM")
# `.env` and whatever else begins with a dot; tests are no part of what is started.
LEFT_OUT: Final = (".*", "tests")
NEW_NETWORK: Final = 0x40000000
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1
REQUEST: Final = "16sH14x"


def bare(around: Mapping[str, str]) -> dict[str, str]:
    """Of an environment what says nothing of a key, a server or a setting."""
    return {name: around[name] for name in KEPT if name in around}


def copied(folder: Path, tree: Path = ROOT) -> Path:
    """A copy of the tree in a folder of its own: its processes look for `.env` beside `manage.py`."""
    place = folder / "tree"
    shutil.copytree(tree, place, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return place


@contextmanager
def no_way_out() -> Iterator[bool]:
    """This thread, and what it starts, in a network that holds this machine alone. False: the kernel does not
    let this account make one, and the network stays as it is. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as before:
        if libc.unshare(NEW_NETWORK):
            yield False
            return
        try:
            _loopback_up()
            yield True
        finally:
            if libc.setns(before.fileno(), NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "The way back to the network is closed.")


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaking:
        held = fcntl.ioctl(speaking, GET_FLAGS, struct.pack(REQUEST, b"lo", 0))
        (flags,) = struct.unpack_from("H", held, 16)
        fcntl.ioctl(speaking, SET_FLAGS, struct.pack(REQUEST, b"lo", flags | UP))


def reaches_out() -> bool:
    """Whether a packet would find a way to another machine. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:
            return False
    return True
