"""A filter of system calls: what a run needs to compute and to read is allowed, all else is refused by the kernel.

No process, no thread, no socket, no signal to others, no program, no writing of files: none of them is on the list.
Refused calls fail with EPERM, so that scanned code sees an ordinary error. Linux on x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

__all__ = ["MACHINES", "allowed_calls", "install_filter", "program"]

# Numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux; -1: there is none.
_CALLS: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "stat": (4, -1),
    "fstat": (5, 80),
    "lstat": (6, -1),
    "poll": (7, -1),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, -1),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "mincore": (27, 232),
    "madvise": (28, 233),
    "dup": (32, 23),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "uname": (63, 160),
    "getcwd": (79, 17),
    "readlink": (89, -1),
    "gettimeofday": (96, 169),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "sigaltstack": (131, 132),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "arch_prctl": (158, -1),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "newfstatat": (262, 79),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "ppoll": (271, 73),
    "get_robust_list": (274, 100),
    "set_robust_list": (273, 99),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "statx": (332, 291),
    "rseq": (334, 293),
    "faccessat2": (439, 439),
}
# Of processes that are joined by sockets which they have already: to talk over these.
_JOINED: dict[str, tuple[int, int]] = {
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "shutdown": (48, 210),
    "setsockopt": (54, 208),
    "getsockopt": (55, 209),
    "epoll_wait": (232, -1),
    "epoll_ctl": (233, 21),
    "epoll_pwait": (281, 22),
}
_OPEN = {"x86_64": (2, 257), "aarch64": (-1, 56)}  # open, openat: to read alone
_IOCTL = {"x86_64": 16, "aarch64": 29}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_TCGETS, _FIOCLEX, _F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC = 0x5401, 0x5451, 0, 1, 2, 3, 1030

MACHINES = tuple(_AUDIT)

# linux/bpf_common.h, linux/seccomp.h, linux/prctl.h
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1
_X32 = 0x40000000
# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND and O_TMPFILE's own bit: the same on both machines but for directories.
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000


def allowed_calls(machine: str, *, joined: bool = False) -> dict[str, int]:
    """The numbers of the calls that are allowed whatever their arguments."""
    column = MACHINES.index(machine)
    calls = {**_CALLS, **_JOINED} if joined else _CALLS
    return {name: numbers[column] for name, numbers in calls.items() if numbers[column] >= 0}


def _argument(index: int, *, high: bool = False) -> int:
    return _ARGUMENTS + 8 * index + (4 if high else 0)


def program(machine: str, *, joined: bool = False) -> bytes:
    """The filter for a machine, as struct sock_filter[]."""
    code: list[tuple[int, int, int, int]] = []

    def add(operation: int, value: int, yes: int = 0, no: int = 0) -> None:
        code.append((operation, yes, no, value & 0xFFFFFFFF))

    add(_LOAD, _ARCH)
    add(_EQUAL, _AUDIT[machine], 1, 0)
    add(_RETURN, _KILL)
    add(_LOAD, _NUMBER)
    if machine == "x86_64":
        add(_AT_LEAST, _X32, 0, 1)
        add(_RETURN, _KILL)
    for number in sorted(allowed_calls(machine, joined=joined).values()):
        add(_EQUAL, number, 0, 1)
        add(_RETURN, _ALLOW)
    for index, number in enumerate(_OPEN[machine]):
        if number >= 0:
            add(_EQUAL, number, 0, 4)
            add(_LOAD, _argument(index + 1))
            add(_ANY_BIT, _WRITING, 0, 1)
            add(_RETURN, _REFUSE)
            add(_RETURN, _ALLOW)
    for number, index, values in (
        (_IOCTL[machine], 1, (_TCGETS, _FIOCLEX)),
        (_FCNTL[machine], 1, (_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC)),
    ):
        add(_EQUAL, number, 0, 2 * len(values) + 2)
        add(_LOAD, _argument(index))
        for value in values:
            add(_EQUAL, value, 0, 1)
            add(_RETURN, _ALLOW)
        add(_RETURN, _REFUSE)
    add(_EQUAL, _PRLIMIT[machine], 0, 5)  # to ask for limits, not to set them: the new ones are a null pointer
    add(_LOAD, _argument(2))
    add(_EQUAL, 0, 0, 3)
    add(_LOAD, _argument(2, high=True))
    add(_EQUAL, 0, 0, 1)
    add(_RETURN, _ALLOW)
    add(_RETURN, _REFUSE)
    return b"".join(struct.pack("=HBBI", *item) for item in code)


def install_filter(*, joined: bool = False) -> None:
    """Put the filter on all threads of this process, for good; ``joined`` leaves it the sockets that it has.

    Raises:
        OSError: The kernel or the machine has no such filters.
    """
    machine = platform.machine()
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"there is no filter of system calls for {machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    filters = program(machine, joined=joined)
    buffer = ctypes.create_string_buffer(filters, len(filters))
    header = struct.pack("HxxxxxxP", len(filters) // 8, ctypes.addressof(buffer))
    pointer = ctypes.create_string_buffer(header, len(header))
    done = libc.prctl(*(ctypes.c_ulong(value) for value in (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
    if done == 0:
        call = (_SECCOMP[machine], _SET_MODE_FILTER, _ALL_THREADS, ctypes.addressof(pointer))
        done = libc.syscall(*(ctypes.c_ulong(value) for value in call))
    if done != 0:
        number = ctypes.get_errno() or errno.EAGAIN
        raise OSError(number, os.strerror(number))
