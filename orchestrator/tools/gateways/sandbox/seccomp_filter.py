"""The filter of system calls that code in the sandbox lives under (seccomp), as a BPF program.

The sandbox has no other networks, files and processes to reach; this closes the ways that no namespace
closes: sockets of families that are not namespaced (a virtual machine's own among them), new namespaces,
memory that no limit counts, and the corners of the kernel in which most holes were found.
"""

import errno
import socket
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

LOAD, EQUAL, AT_LEAST, ANY_OF, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
NEW_NAMESPACES = 0x7E020000
OTHER_NUMBERING = 0x40000000


class Machine(NamedTuple):
    """A kind of processor: its mark in the kernel's audit numbering, and its own numbers of system calls."""

    mark: int
    clone: int
    socket: int
    socketpair: int
    refused: tuple[int, ...]


# The same numbers everywhere: io_uring, the newer mount calls, pidfd_getfd, mount_setattr, quotactl_fd,
# memfd_secret.
_SHARED = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 447)
CLONE3 = 435
MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(
        mark=0xC000003E,
        clone=56,
        socket=41,
        socketpair=53,
        refused=(
            # Memory outside of every count: shmget, semget, msgget, mq_open, memfd_create.
            29, 64, 68, 240, 319,
            # Other processes: ptrace, process_vm_readv, process_vm_writev, kcmp.
            101, 310, 311, 312,
            # Places: pivot_root, chroot, mount, umount2, unshare, setns.
            155, 161, 165, 166, 272, 308,
            # Keys, perf, fanotify, handles of files, bpf, userfaultfd.
            248, 249, 250, 298, 300, 303, 304, 321, 323,
            # The machine itself: log, clock, swap, modules, ports, accounting, reboot.
            103, 134, 135, 153, 154, 159, 163, 164, 167, 168, 169, 172, 173, 175, 176, 179, 180, 212, 227,
            246, 305, 313, 320,
        ),
    ),
    "aarch64": Machine(
        mark=0xC00000B7,
        clone=220,
        socket=198,
        socketpair=199,
        refused=(
            180, 186, 190, 194, 279,
            117, 270, 271, 272,
            39, 40, 41, 51, 97, 268,
            217, 218, 219, 241, 262, 264, 265, 280, 282,
            18, 42, 58, 60, 89, 92, 104, 105, 106, 112, 116, 142, 170, 171, 224, 225, 266, 273, 294,
        ),
    ),
}  # fmt: skip


def build_seccomp_filter(machine: str) -> bytes | None:
    """The filter for this kind of processor; None where its numbers are not known here."""
    found = MACHINES.get(machine)
    if found is None:
        return None
    lines = [
        (LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, found.mark), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]  # fmt: skip
    if machine == "x86_64":
        # Another numbering of the same calls, under the same mark.
        lines += [(AT_LEAST, 0, 1, OTHER_NUMBERING), (RETURN, 0, 0, KILL)]
    for number in (*found.refused, *_SHARED):
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    # Its flags lie in memory, where a filter cannot look; without it the C library takes clone.
    lines += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    lines += [
        (EQUAL, 0, 4, found.clone), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_OF, 0, 1, NEW_NAMESPACES),
        (RETURN, 0, 0, REFUSE | errno.EPERM), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    for number in (found.socket, found.socketpair):
        lines += [
            (EQUAL, 0, 4, number), (LOAD, 0, 0, FIRST_ARGUMENT), (EQUAL, 1, 0, int(socket.AF_UNIX)),
            (RETURN, 0, 0, REFUSE | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW),
        ]  # fmt: skip
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
