"""What a process that runs scanned code is denied, by the kernel: in layers, the weakest of which suffices.

1. A filter of system calls (``seccomp.py``): no writing, no process or thread, no network, no signals, no programs.
   Without it nothing is run.
2. Limits on CPU time, memory, files and their size.
3. Where the kernel allows it: namespaces of its own (no network device, no other process in sight, every mount
   read-only), and Landlock (no writing, no signal and no connection to what is outside).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from eaglelint.probe.wiring.seccomp import install_filter

__all__ = ["Limits", "isolate", "not_dumpable", "restrict"]

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = (
    0x00020000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_MS_REC_PRIVATE = 0x4000 | 0x40000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1
_SYS_MOUNT_SETATTR, _SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_RESTRICT = 442, 444, 446  # the same numbers on all machines
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _SIGKILL = 1, 4, 38, 9
# linux/landlock.h: every right to change files by version of the interface, TCP bind and connect, both scopes
_WRITING = 0b1111111110010
_LANDLOCK_WRITING = {1: _WRITING, 2: _WRITING | 1 << 13, 3: _WRITING | 1 << 13 | 1 << 14}

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one run: seconds of CPU and by the clock, bytes of memory beyond torch's, files, bytes that it says."""

    cpu_seconds: int = 15
    wall_seconds: float = 60.0
    memory: int = 1 << 30
    files: int = 64
    output: int = 1 << 20
    answer: int = 1 << 20


def isolate() -> list[str]:
    """Leave the namespaces of the parent, as far as the kernel lets one; says what was done.

    Called once, before torch is loaded, by the process that then starts the runs and runs nothing scanned itself.
    It goes on in a child, which is process 1 of its own, where it may have one.
    """
    done: list[str] = []
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET) != 0:
        return done
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    except OSError:
        pass  # what is not mapped is nobody: no less contained
    done.append("a network namespace with no way out")
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0), 32)
    private = libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None) == 0
    if private and libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, 32) == 0:
        done.append("every mount read-only")
        libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, b"size=16m")  # for torchrun's own files
        os.environ["TMPDIR"] = "/dev/shm"
    _loopback()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    done.append("a process namespace of its own")
    return done


def restrict(limits: Limits, *, joined: bool = False) -> list[str]:
    """Give up, for good, what scanned code must not have; says what is enforced. ``joined``: one of several ranks.

    Raises:
        OSError: System calls cannot be filtered here, so nothing may be run.
    """
    done = []
    libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    used = _virtual_memory()
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 2))  # first a signal that tells
    for what, value in (
        (resource.RLIMIT_AS, used + limits.memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits.files),
        (resource.RLIMIT_NPROC, 0),
    ):
        _, most = resource.getrlimit(what)
        limit = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(what, (limit, limit))
    done.append(f"{limits.cpu_seconds} s of CPU, {limits.memory >> 20} MiB of memory, {limits.files} open files")
    if _landlock():
        done.append("Landlock")
    install_filter(joined=joined)
    network = "new sockets" if joined else "network"
    done.append(f"a filter of system calls: no writing, processes, threads, {network}, signals or programs")
    return done


def _landlock() -> bool:
    """Deny writing, and signals and connections to the outside, as far as this kernel's Landlock goes."""
    version = libc.syscall(_SYS_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    files = _LANDLOCK_WRITING[min(version, 3)]
    network, scopes = (0b11 if version >= 4 else 0), (0b11 if version >= 6 else 0)
    fields = struct.pack("=QQQ", files, network, scopes)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = libc.syscall(_SYS_LANDLOCK_CREATE, ctypes.create_string_buffer(fields, len(fields)), len(fields), 0)
    if rules < 0:
        return False
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    enforced: bool = libc.syscall(_SYS_LANDLOCK_RESTRICT, rules, 0) == 0
    os.close(rules)
    return enforced


def _virtual_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    return pages * resource.getpagesize()


def _loopback() -> None:
    """Ranks talk over the loopback device of their own network namespace; it leads nowhere else."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh22x", b"lo", _IFF_UP)
        try:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
        except OSError:
            return  # ranks cannot be joined then, and say so


def not_dumpable() -> None:
    """Nobody may trace this process or read its memory."""
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
