"""Fuzzes the readers of files beside a draft: ``python -m tools.fuzz_readers --minutes 10``.

Published configs, headers, an index, tokenizers and files of torch.save are damaged (bytes, JSON values, lying lengths)
by hypothesis, and everything that a scan of files alone does is done with them, in a process that is watched. A
traceback, more than a second of processor time for one case, or 64 MB more than before it is a defect: it is printed,
and the files that show it are kept. It needs Linux.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.draft import read_draft
from eaglelint.artifacts.target import read_target
from eaglelint.beside import with_files
from eaglelint.exceptions import EaglelintError
from eaglelint.registry import all_rules
from eaglelint.rule import Facts
from tests.torch_files import legacy_bytes, state_dict_pickle, write_zip

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 1.0
MOST_BYTES = 64 * 2**20
BATCH = 200  # cases that hypothesis makes from one random state
WORK = 4000  # cases after which a process makes room for a new one
TRACED = 16  # one case of so many is traced: how much memory it takes exactly, at a tenth of the speed
PATIENCE = 60.0  # seconds of the clock without a word from a process, on a busy machine

HEADER = {
    "fc.weight": {"dtype": "BF16", "shape": [16, 48], "data_offsets": [0, 1536]},
    "midlayer.self_attn.q_proj.weight": {"dtype": "BF16", "shape": [16, 32], "data_offsets": [1536, 2560]},
    "d2t": {"dtype": "I64", "shape": [8], "data_offsets": [2560, 2624]},
    "t2d": {"dtype": "BOOL", "shape": [32], "data_offsets": [2624, 2656]},
    "embed_tokens.weight": {"dtype": "F32", "shape": [8, 4], "data_offsets": [2656, 2784]},
}
INDEX = {"metadata": {"total_size": 2784}, "weight_map": dict.fromkeys(HEADER, "model-00001-of-00001.safetensors")}
TOKENIZER = {
    "model": {"type": "BPE", "vocab": {chr(97 + number): number for number in range(26)}, "merges": []},
    "added_tokens": [{"id": 26, "content": "<mask>", "special": True}],
}


def torch_files() -> tuple[bytes, bytes]:
    """The same tensors as torch.save writes them: a zip archive, and the form before that."""
    pickled = state_dict_pickle({"fc.weight": ("float32", (16, 48)), "d2t": ("int64", (8,))})
    with tempfile.TemporaryDirectory() as directory:
        return write_zip(Path(directory, "weights.bin"), pickled).read_bytes(), legacy_bytes(pickled)


def seeds() -> list[dict[str, bytes]]:
    """Sound projects, by file."""
    archive, legacy = torch_files()
    targets = sorted((ROOT / "tests/published/targets").glob("*.json"))
    header = json.dumps(HEADER).encode()
    checkpoint = struct.pack("<Q", len(header)) + header + bytes(2784)
    found = []
    for number, draft in enumerate(sorted((ROOT / "tests/published/drafts").rglob("*.json"))):
        sharded = number % 4 == 1
        name = "model-00001-of-00001.safetensors" if sharded else "model.safetensors"
        files = {"draft/config.json": draft.read_bytes(), f"draft/{name}": checkpoint}
        if sharded:
            files["draft/model.safetensors.index.json"] = json.dumps(INDEX).encode()
        elif number % 4 > 1:
            del files[f"draft/{name}"]
            files["draft/pytorch_model.bin"] = archive if number % 4 == 2 else legacy
        for side in ("draft", "target"):
            files[f"{side}/tokenizer.json"] = json.dumps(TOKENIZER).encode()
        files["target/config.json"] = targets[number % len(targets)].read_bytes()
        found.append(files)
    return found


SEEDS = seeds()
VALUES = st.sampled_from([
    None, True, -1, 0, 2**31, 2**63, 10**30, 1e308, float("nan"), "", "\ud800", "a" * 5000, [], {}, [[[]]], [0] * 3000,
    {"a": {"a": {"a": []}}}, ["x", 1, None], "9" * 400,
])  # fmt: skip


@st.composite
def projects(draw: st.DrawFn) -> dict[str, bytes]:
    """A sound project with some of its files damaged."""
    files = dict(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(files)))
        way = draw(st.sampled_from(["bytes", "cut", "value", "length", "deep", "gone", "noise"]))
        data = files[name]
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        if way == "bytes":
            put = draw(st.binary(max_size=8))
            files[name] = data[:at] + put + data[at + draw(st.integers(0, 8)) :]
        elif way == "cut":
            files[name] = data[:at]
        elif way == "value" and name.endswith(".json"):
            files[name] = _with_value(draw, data)
        elif way == "length":
            lie = draw(st.sampled_from([0, 1, 2**20, 2**31, 2**62, 2**63, 2**64 - 1]))
            files[name] = struct.pack("<Q", lie) + data[8:]
        elif way == "deep":
            files[name] = data[:at] + draw(st.sampled_from([b"[", b'{"a":'])) * draw(st.integers(1, 30_000)) + data[at:]
        elif way == "gone":
            del files[name]
            files.setdefault("draft/config.json", b"{}")
        else:
            files[name] = draw(st.binary(max_size=400))
    return files


def _with_value(draw: st.DrawFn, data: bytes) -> bytes:
    """JSON with another value at some place."""
    try:
        whole: Any = json.loads(data)
    except (ValueError, RecursionError):
        return data
    holder = whole
    while isinstance(holder, dict) and holder:
        key = draw(st.sampled_from(sorted(holder)))
        if not isinstance(holder[key], dict) or draw(st.booleans()):
            holder[key] = draw(VALUES)
            break
        holder = holder[key]
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def look(directory: Path) -> None:
    """All that a scan of files alone does."""
    draft_path, target_path = directory / "draft", directory / "target"
    try:
        draft = read_draft(draft_path, "draft/config.json")
        target = read_target(target_path, "target/config.json") if (target_path / "config.json").exists() else None
        facts = Facts(draft, target, None, ())
        facts, _, _ = with_files(facts, draft_path, target_path if target is not None else None)
    except EaglelintError:
        return
    for rule in all_rules():
        for finding in rule.check(rule, facts):
            str(finding.fingerprint)


# --- the process that works ----------------------------------------------------------------------------------------


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError where it goes on for longer, counted in the processor's time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds:.1f} s of processor time")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def no_more_than(grown: int) -> Iterator[None]:
    """Has every allocation fail that would let the process grow by more bytes than that."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + grown, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def case(files: Mapping[str, bytes], directory: Path, *, trace: bool) -> tuple[float, int, str]:
    """Seconds of processor time and, if traced, the most bytes at a time that it takes; what is wrong with it."""
    for path in directory.glob("*/*"):
        path.unlink()
    for name, data in files.items():
        Path(directory, name).write_bytes(data)
    if trace:
        tracemalloc.start()
    began, most, wrong = time.process_time(), 0, ""
    try:
        with at_most(MOST_SECONDS * (10 if trace else 1)), no_more_than(MOST_BYTES):
            look(directory)
    except BaseException:
        wrong = traceback.format_exc()
    seconds = 0.0 if trace else time.process_time() - began
    if trace:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return seconds, most, wrong


def work(directory: Path, answers: Connection) -> None:
    """Make cases and say how each went, until there were enough for one process."""
    case(SEEDS[0], directory, trace=False)  # what is loaded once is no case's own
    count = 0

    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(projects())
    def fuzz(files: dict[str, bytes]) -> None:
        nonlocal count
        count += 1
        answers.send(case(files, directory, trace=count % TRACED == 0))
        answers.recv()  # the files of a case that went wrong are kept meanwhile

    for _ in range(WORK // BATCH):
        fuzz()


# --- the process that watches --------------------------------------------------------------------------------------


class Tally:
    """How many cases there were, the slowest and the largest, and what went wrong."""

    def __init__(self, keep: Path) -> None:
        self.keep = keep
        self.count, self.slowest, self.largest = 0, 0.0, 0
        self.wrong: Counter[str] = Counter()

    def add(self, seconds: float, most: int, wrong: str, directory: Path) -> None:
        self.count += 1
        self.slowest, self.largest = max(self.slowest, seconds), max(self.largest, most)
        if wrong:
            kind = "\n".join(wrong.strip().splitlines()[-3:])  # the line that failed and how, whatever led there
            self.wrong[kind] += 1
            if self.wrong[kind] == 1:
                place = self.keep / str(len(self.wrong))
                shutil.copytree(directory, place, dirs_exist_ok=True)
                print(f"{wrong}\nThe files are in {place}.", flush=True)

    def __str__(self) -> str:
        failed = sum(self.wrong.values())
        return (
            f"{self.count} cases, the slowest {self.slowest:.2f} s of processor time, the largest "
            f"{self.largest / 2**20:.1f} MB, {failed} went wrong in {len(self.wrong)} ways"
        )


def watch(directory: Path, end: float, tally: Tally) -> None:
    """One process from its start to its end, or to the end of the time."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=work, args=(directory, there), daemon=True)
    process.start()
    there.close()
    try:
        while time.monotonic() < end:
            if not here.poll(PATIENCE):
                tally.add(PATIENCE, 0, f"no answer within {PATIENCE:.0f} s", directory)
                return
            tally.add(*here.recv(), directory)
            here.send(True)
    except (EOFError, ConnectionError):
        process.join()
        if process.exitcode:
            tally.add(0.0, 0, f"the process ended with {process.exitcode}", directory)
    finally:
        process.kill()
        process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="where files that fail are kept")
    arguments = parser.parse_args()
    memory = Path("/dev/shm")
    tally = Tally(arguments.keep)
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        for part in ("draft", "target"):
            Path(name, part).mkdir()
        while time.monotonic() < end:
            watch(Path(name), end, tally)
    print(tally)
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
