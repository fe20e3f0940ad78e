"""Hostile engine files: each is contained and reported, and those that come after it are run all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

from eaglelint.probe.wiring.contain import Limits
from eaglelint.probe.wiring.launch import Answer, run_tasks
from eaglelint.probe.wiring.seccomp import MACHINES, allowed_calls, program
from eaglelint.probe.wiring.task import Task
from tests.probe.wiring.trees import model_file, write_engine

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="scanned code is contained on Linux alone")

_LIMITS = Limits(cpu_seconds=3, wall_seconds=30.0, memory=512 << 20)
_SHORT = Limits(cpu_seconds=3, wall_seconds=2.0, memory=512 << 20)


@dataclass(frozen=True)
class _Hostile:
    """A file's first lines; what is reported of the run, of a statement that failed, or of an attempt."""

    code: str
    error: str | None = None
    passed_over: str | None = None
    attempt: str | None = None
    limits: Limits = _LIMITS


_HOSTILE = {
    "forks without end": _Hostile(
        "import os\nwhile True:\n    os.fork()\n", passed_over="PermissionError", attempt="to start a process"
    ),
    "starts a program": _Hostile(
        "import subprocess\nsubprocess.run(['touch', 'OUTSIDE'])\n",
        passed_over="PermissionError",
        attempt="to start a program",
    ),
    "writes outside": _Hostile(
        "open('OUTSIDE', 'w').write('was here')\n", passed_over="PermissionError", attempt="to write OUTSIDE"
    ),
    "removes the tree": _Hostile(
        "import os\nos.remove(__file__)\n", passed_over="PermissionError", attempt="to remove a file"
    ),
    "opens a socket": _Hostile(
        "import socket\nsocket.create_connection(('127.0.0.1', 22))\n",
        passed_over="PermissionError",
        attempt="to open a socket",
    ),
    "calls the kernel itself": _Hostile(
        "import ctypes\nif ctypes.CDLL(None).fork() != -1 or ctypes.CDLL(None).socket(2, 1, 0) != -1:\n"
        "    raise KeyboardInterrupt('it got through')\n"
    ),
    "allocates without end": _Hostile(
        "held = []\nwhile True:\n    held.append(bytearray(1 << 24))\n",
        error="it took more memory than it may have",
    ),
    "computes without end": _Hostile("while True:\n    pass\n", error="it used up its CPU time"),
    "never returns": _Hostile("import time\ntime.sleep(10_000)\n", error="it did not end within 2 s", limits=_SHORT),
    "prints gigabytes": _Hostile("while True:\n    print('x' * 100_000)\n", error="it printed more than 1024 KiB"),
    "kills its parent": _Hostile(
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
        passed_over="PermissionError",
        attempt="to send a signal",
    ),
    "kills all": _Hostile(
        "import os, signal\nos.kill(-1, signal.SIGKILL)\n", passed_over="PermissionError", attempt="to send a signal"
    ),
    "ends its process": _Hostile("import os\nos._exit(0)\n", error="it ended without an answer"),
    "crashes": _Hostile("import ctypes\nctypes.string_at(0)\n", error="it was ended by SIGSEGV"),
    "answers too much": _Hostile(
        "import os\nfor descriptor in range(3, 64):\n    try:\n        os.write(descriptor, b'{' * (1 << 21))\n"
        "    except OSError:\n        pass\n",
        error="it answered more than 1024 KiB",
    ),
    "answers nonsense": _Hostile(
        "import os\nfor descriptor in range(3, 64):\n    try:\n        os.write(descriptor, b'{')\n"
        "    except OSError:\n        pass\nos._exit(0)\n",
        error="it ended without an answer",
    ),
}


def _task(root: Path) -> Task:
    return Task("sglang", str(root), "sglang.srt.models.demo", "DemoForCausalLM", 8, {}, "eagle3", (1, 3, 5))


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outside") / "file"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, outside: Path) -> dict[str, tuple[Path, Answer]]:
    """All hostile files, one after the other, and a harmless one at the end."""
    found: dict[str, tuple[Path, Answer]] = {}
    for limits in (_LIMITS, _SHORT):
        names = [name for name, hostile in _HOSTILE.items() if hostile.limits is limits] + ["harmless"]
        roots = []
        for name in names:
            code = _HOSTILE[name].code.replace("OUTSIDE", str(outside)) if name in _HOSTILE else ""
            roots.append(write_engine(tmp_path_factory.mktemp("engine"), model_file(before=code)))
        given = run_tasks([_task(root) for root in roots[:-1]], limits=limits)
        given += run_tasks([_task(roots[-1])]) if limits is _LIMITS else []
        found.update(zip(names, zip(roots, given, strict=False), strict=False))
    return found


@pytest.mark.parametrize("name", _HOSTILE)
def test_a_hostile_file_is_contained_and_reported(
    name: str, answers: dict[str, tuple[Path, Answer]], outside: Path
) -> None:
    """The run ends, what it did is told, nothing is left behind, and the tree is as it was."""
    root, answer = answers[name]
    hostile = _HOSTILE[name]
    observation = answer.observation
    if hostile.error is not None:
        assert observation.error == hostile.error, answer
        assert answer.contained
        assert observation.seen == ()
    else:
        assert observation.error is None, answer
    if hostile.passed_over is not None:
        assert [why for _, why in observation.stood_in if why.startswith(hostile.passed_over)], answer
    if hostile.attempt is not None:
        assert hostile.attempt.replace("OUTSIDE", str(outside)) in answer.attempts
    assert not outside.exists()
    assert (root / "sglang/srt/models/demo.py").is_file()
    assert any("system calls" in item for item in answer.enforced) or hostile.error is not None


def test_a_harmless_file_is_run_after_all_of_them(answers: dict[str, tuple[Path, Answer]]) -> None:
    """The process that starts the runs outlives every one of them."""
    _, answer = answers["harmless"]
    assert [seen.boundary for seen in answer.observation.seen] == [2, 4, 6]


_TRIES = """
import ctypes, json, os, signal, socket, sys, threading
sys.path.insert(0, sys.argv[1])
from eaglelint.probe.wiring.seccomp import install_filter
libc = ctypes.CDLL(None)
tries = {
    "write": lambda: open(sys.argv[2], "w"),
    "append": lambda: os.open(sys.argv[2], os.O_APPEND | os.O_CREAT),
    "remove": lambda: os.remove(sys.argv[3]),
    "rename": lambda: os.rename(sys.argv[3], sys.argv[2]),
    "mkdir": lambda: os.mkdir(sys.argv[2]),
    "cut": lambda: os.truncate(sys.argv[3], 0),
    "mode": lambda: os.chmod(sys.argv[3], 0),
    "fork": os.fork,
    "program": lambda: os.execv("/bin/true", ["true"]),
    "thread": lambda: threading.Thread(target=print).start(),
    "socket": socket.socket,
    "pair": socket.socketpair,
    "signal": lambda: os.kill(os.getppid(), signal.SIGCONT),
    "limits": lambda: __import__("resource").setrlimit(7, (8, 8)),
}
install_filter()
through = []
for name, attempt in tries.items():
    try:
        attempt()
    except (OSError, RuntimeError, ValueError):
        continue
    through.append(name)
print(json.dumps([through, open(sys.argv[3]).read()]))
"""


def test_the_filter_alone_suffices(tmp_path: Path) -> None:
    """Without namespaces, Landlock or limits: nothing of what is refused gets through, and reading still works."""
    kept = tmp_path / "kept"
    kept.write_text("as it was", encoding="utf-8")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-I", "-c", _TRIES, str(root), str(tmp_path / "new"), str(kept)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert json.loads(result.stdout) == [[], "as it was"], result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_refuses_by_default(machine: str) -> None:
    """The program ends in a refusal, and no call that starts, sends, links or changes anything is on its list."""
    calls = allowed_calls(machine)
    assert len(set(calls.values())) == len(calls)
    harmful = {"fork", "clone", "clone3", "execve", "socket", "connect", "kill", "tgkill", "unlink", "rename", "ptrace"}
    assert not harmful & set(calls)
    code = program(machine)
    assert len(code) % 8 == 0
    assert code[-8:-6] == b"\x06\x00"  # BPF_RET
    assert int.from_bytes(code[-4:], "little") >> 16 == 5  # SECCOMP_RET_ERRNO
