"""The parent's side: start the child with nothing of ours in its environment, hand it tasks, trust no byte."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import eaglelint
from eaglelint.exceptions import UnreadableInput
from eaglelint.probe.wiring.contain import Limits
from eaglelint.probe.wiring.task import Observation, Seen, Task

__all__ = ["Answer", "run_tasks"]

LIMITS = Limits()
_START_SECONDS = 120.0  # torch from a cold disk
_GRACE_SECONDS = 20.0  # beyond what the child itself gives a run
_MOST = 4 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one task.

    Attributes:
        observation: What was seen; with an ``error`` where the run did not end as it should.
        contained: Whether the run had to be ended, or misbehaved so that nothing it said is used.
        enforced: What the kernel denied the run.
        attempts: What the run was seen to try beside computing; refused where ``enforced`` says so.
    """

    observation: Observation
    contained: bool = False
    enforced: tuple[str, ...] = ()
    attempts: tuple[str, ...] = ()
    ranks: int = 1


def run_tasks(
    tasks: Sequence[Task], *, limits: Limits = LIMITS, progress: Callable[[str], None] = lambda text: None
) -> list[Answer]:
    """Run tasks one after another in a child process.

    Raises:
        UnreadableInput: The child cannot be started: no Linux, no torch.
    """
    if sys.platform != "linux":
        raise UnreadableInput("--execute runs scanned code only where the kernel can contain it, which is Linux.")
    answers: list[Answer] = []
    while len(answers) < len(tasks):
        before = len(answers)
        _serve(tasks[before:], answers, limits, progress)
        if len(answers) == before:  # the child died of this one
            answers.append(Answer(Observation(error="the child process ended"), contained=True))
    return answers


def _serve(tasks: Sequence[Task], answers: list[Answer], limits: Limits, progress: Callable[[str], None]) -> None:
    """One child, for as many tasks as it survives."""
    script = Path(__file__).with_name("child.py")
    root = Path(eaglelint.__file__).parent.parent
    child = subprocess.Popen(
        [sys.executable, "-I", str(script), str(root), json.dumps(asdict(limits))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        cwd="/",
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        for number, task in enumerate(tasks):
            progress(f"running {task.cls}")
            try:
                child.stdin.write(json.dumps(task.to_json()).encode() + b"\n")
                child.stdin.flush()
            except BrokenPipeError:
                return
            line = _line(
                child.stdout.fileno(), limits.wall_seconds + _GRACE_SECONDS + (0 if number else _START_SECONDS)
            )
            if line is None:
                if number == 0 and not answers and child.poll() not in (None, 0):
                    _refuse_to_start(child.stderr.read(4000).decode("utf-8", "replace"))
                return
            answers.append(_answer(line))
    finally:
        child.kill()
        for pipe in (child.stdin, child.stdout, child.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                continue
        child.wait()


def _refuse_to_start(said: str) -> None:
    if "No module named 'torch'" in said:
        raise UnreadableInput("the wiring probe needs torch. Install it: pip install 'eaglelint[probe]'.")


def _line(descriptor: int, seconds: float) -> bytes | None:
    """One line of the child's, None where it ends, says too much or takes too long."""
    until = time.monotonic() + seconds
    data = bytearray()
    while not data.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        piece = os.read(descriptor, 1 << 16)
        if not piece or len(data) > _MOST:
            return None
        data += piece
    return bytes(data)


def _answer(line: bytes) -> Answer:
    try:
        document = json.loads(line)
        enforced = tuple(str(item) for item in document.get("enforced", ()))
        if "ranks" in document:
            return replace(_of_ranks(list(map(_document, document["ranks"])), enforced), ranks=len(document["ranks"]))
        return _document(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Answer(Observation(error="its answer is none"), contained=True)


def _document(document: dict[str, Any]) -> Answer:
    enforced = tuple(str(item) for item in document.get("enforced", ()))
    attempts = tuple(str(item) for item in document.get("attempts", ()))
    if "observation" in document:
        return Answer(Observation.from_json(document["observation"]), False, enforced, attempts)
    error = Observation(error=str(document["error"]))
    return Answer(error, bool(document.get("contained")), enforced, attempts)


def _of_ranks(answers: list[Answer], enforced: tuple[str, ...]) -> Answer:
    """What all ranks together saw: a state is whole where it is on each of them."""
    first = answers[0]
    enforced = tuple(dict.fromkeys((*enforced, *first.enforced)))
    observations = [answer.observation for answer in answers]
    failed = next((seen.error for seen in observations if seen.error is not None), None)
    if failed is not None or len({len(seen.seen) for seen in observations}) != 1:
        error = failed or "the ranks captured different numbers of states"
        return Answer(replace(first.observation, error=error), any(answer.contained for answer in answers), enforced)
    seen = tuple(_whole(states) for states in zip(*(item.seen for item in observations), strict=True))
    fused = None
    if any(item.fused is not None for item in observations):
        fused = tuple(
            _whole(states) for states in zip(*(item.fused or item.seen for item in observations), strict=True)
        )
    attempts = tuple(dict.fromkeys(text for answer in answers for text in answer.attempts))
    return Answer(replace(first.observation, seen=seen, fused=fused), False, enforced, attempts)


def _whole(states: tuple[Seen, ...]) -> Seen:
    """One state as the ranks have it: a part of it where one of them has a part."""
    if all(state == states[0] for state in states):
        return states[0]
    parts = [state for state in states if state.form == "shard"] or [
        state for state in states if state.form == "unknown"
    ]
    holds = "; ".join(f"rank {rank}: {state.holds}" for rank, state in enumerate(states))
    return replace(parts[0] if parts else Seen("unknown", None, ""), holds=holds)
