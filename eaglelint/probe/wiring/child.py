"""The child process: loads torch, then runs each class in a process of its own, under limits, and reports in JSON.

Started as ``python -I child.py ROOT LIMITS`` with tasks on standard input, a line each. It never runs scanned code
itself. An answer is a line of JSON: at most ``Limits.answer`` bytes, read from a pipe that the run writes once.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eaglelint.probe.wiring.contain import Limits


def main() -> None:
    """Answer the tasks on standard input until it ends."""
    sys.path.insert(0, sys.argv[1])
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    from eaglelint.probe.wiring.contain import Limits, isolate, not_dumpable

    limits = Limits(**json.loads(sys.argv[2]))
    enforced = isolate()
    not_dumpable()
    import torch

    torch.set_num_threads(1)
    from eaglelint.probe.wiring import observe  # loaded once, for all runs

    del observe
    tasks = os.fdopen(os.dup(0), "rb")
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for line in tasks:
        answer = _supervise(line, (tasks.fileno(), answers), enforced, limits)
        os.write(answers, json.dumps(answer).encode() + b"\n")


def _supervise(line: bytes, closed: tuple[int, ...], enforced: list[str], limits: Limits) -> dict[str, Any]:
    """One run in a process of its own; whatever it does, there is an answer."""
    answer_end, answer_start = os.pipe()
    output_end, output_start = os.pipe()
    child = os.fork()
    if not child:
        for descriptor in (*closed, answer_end, output_end):
            os.close(descriptor)
        os.dup2(output_start, 1)
        os.dup2(output_start, 2)
        os.close(output_start)
        ranks = json.loads(line).get("ranks", 1)
        if ranks > 1:
            _run_ranks(line, ranks, answer_start, limits)
        _run(line, answer_start, limits)
        os._exit(0)
    os.close(answer_start)
    os.close(output_start)
    received = {answer_end: bytearray(), output_end: bytearray()}
    most = {answer_end: limits.answer, output_end: limits.output}
    until = time.monotonic() + limits.wall_seconds
    error = None
    while received and error is None:
        left = until - time.monotonic()
        if left <= 0:
            error = f"it did not end within {limits.wall_seconds:g} s"
            break
        for descriptor in select.select([*received], [], [], left)[0]:
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                if descriptor == answer_end:
                    answer = bytes(received[answer_end])
                del received[descriptor]
                continue
            received[descriptor] += piece
            if len(received[descriptor]) > most[descriptor]:
                what = "answered" if descriptor == answer_end else "printed"
                error = f"it {what} more than {most[descriptor] >> 10} KiB"
    os.kill(child, signal.SIGKILL)  # ranks that it has started end with it (PR_SET_PDEATHSIG)
    _, status = os.waitpid(child, 0)
    os.close(answer_end)
    os.close(output_end)
    if error is None:
        try:
            document = json.loads(answer)
            if isinstance(document, dict):
                document["enforced"] = [*enforced, *map(str, document.get("enforced", ()))]
                return document
        except ValueError:
            pass
        error = _ended(status)
    return {"error": error, "contained": True, "enforced": enforced}


def _ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "it used up its CPU time"
        if number != signal.SIGKILL:
            return f"it was ended by {signal.Signals(number).name}"
    return "it ended without an answer"


def _run_ranks(line: bytes, ranks: int, answers: int, limits: Limits) -> None:
    """Become torchrun, which starts a process for each rank; each of them gives up its rights by itself."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.dup2(answers, 1)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank_child.py")
    command = [sys.executable, "-I", "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    command += ["--master-addr=127.0.0.1", f"--master-port={port}", "--max-restarts=0"]
    command += [script, sys.argv[1], sys.argv[2], line.decode()]
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")
    os.execve(sys.executable, command, environment)


def _run(line: bytes, answers: int, limits: Limits) -> None:
    """In the process of one run: give up all rights, run, answer."""
    from eaglelint.probe.wiring.attempts import Attempts
    from eaglelint.probe.wiring.contain import restrict
    from eaglelint.probe.wiring.observe import observe
    from eaglelint.probe.wiring.task import Task

    attempts = Attempts()
    try:
        task = Task.from_json(json.loads(line))
        enforced = restrict(limits)
    except OSError as error:
        document: dict[str, Any] = {"error": f"nothing was run: {error.strerror or error}", "enforced": []}
    else:
        try:
            document = {"observation": observe(task).to_json(), "enforced": enforced}
        except MemoryError:
            document = {"error": "it took more memory than it may have", "contained": True, "enforced": enforced}
        except BaseException as error:
            document = {"error": f"{type(error).__name__}: {error}"[:400], "contained": True, "enforced": enforced}
    attempts.on = False
    data = json.dumps({**document, "attempts": [*attempts.made]}).encode()
    while data:
        data = data[os.write(answers, data) :]


if __name__ == "__main__":
    main()
