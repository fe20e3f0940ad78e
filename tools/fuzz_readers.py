"""Fuzzes the readers of files beside a draft: ``python -m tools.fuzz_readers --minutes 10``.

Published configs, headers, an index and a tokenizer are damaged (bytes, JSON values, lying lengths) by hypothesis, and
everything that a scan of files alone does is done with them. A traceback, more than a second of processor time for one
case, or more than 64 MB at a time is a defect, and is printed with its files.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.draft import read_draft
from eaglelint.artifacts.target import read_target
from eaglelint.beside import with_files
from eaglelint.exceptions import EaglelintError
from eaglelint.registry import all_rules
from eaglelint.rule import Facts

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 1.0
MOST_BYTES = 64 * 2**20
BATCH = 200

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


def seeds() -> list[dict[str, bytes]]:
    """Sound projects, by file."""
    targets = sorted((ROOT / "tests/published/targets").glob("*.json"))
    header = json.dumps(HEADER).encode()
    checkpoint = struct.pack("<Q", len(header)) + header + bytes(2784)
    found = []
    for number, draft in enumerate(sorted((ROOT / "tests/published/drafts").rglob("*.json"))):
        sharded = number % 2
        name = "model-00001-of-00001.safetensors" if sharded else "model.safetensors"
        files = {"draft/config.json": draft.read_bytes(), f"draft/{name}": checkpoint}
        if sharded:
            files["draft/model.safetensors.index.json"] = json.dumps(INDEX).encode()
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


def case(files: Mapping[str, bytes]) -> tuple[float, int]:
    """Seconds of processor time and the most bytes at a time that one project takes."""
    with tempfile.TemporaryDirectory() as directory:
        for name, data in files.items():
            path = Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        tracemalloc.reset_peak()
        before, began = tracemalloc.get_traced_memory()[0], time.process_time()
        look(Path(directory))
        return time.process_time() - began, tracemalloc.get_traced_memory()[1] - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes: float = parser.parse_args().minutes
    tracemalloc.start()
    case(SEEDS[0])  # what is loaded once is no case's own
    count, slowest, largest = 0, 0.0, 0

    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(projects())
    def fuzz(files: dict[str, bytes]) -> None:
        nonlocal count, slowest, largest
        seconds, most = case(files)
        count, slowest, largest = count + 1, max(slowest, seconds), max(largest, most)
        assert seconds <= MOST_SECONDS, f"{seconds:.2f} s"
        assert most <= MOST_BYTES, f"{most / 2**20:.0f} MB"

    end = time.monotonic() + 60 * minutes
    try:
        while time.monotonic() < end:
            fuzz()
    finally:
        print(f"{count} cases, the slowest {slowest:.2f} s of processor time, the largest {largest / 2**20:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
