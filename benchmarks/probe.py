"""The shape probe of a draft as large as Kimi-K2.5's: the whole command, and the run alone, on a GPU if there is one.

The checkpoint is a header with holes for values, so that its 2 GiB take no room; zeros are computed with as fast as
trained weights are.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

PUBLISHED = ROOT / "tests/published"
DRAFT, TARGET = PUBLISHED / "drafts/AQ-MedAI__Kimi-K25-eagle3.json", PUBLISHED / "targets/kimi-k2.5.json"

CHILD = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def lay_out(directory: Path) -> None:
    """The published config and target, and a checkpoint of the shapes that its trainer saves."""
    from eaglelint.artifacts.draft import read_draft
    from tests.checkpoints import write_safetensors
    from tests.published.test_with_checkpoints import checkpoint_of

    for name, source in (("draft", DRAFT), ("target", TARGET)):
        (directory / name).mkdir()
        shutil.copy(source, directory / name / "config.json")
    tensors = checkpoint_of(read_draft(DRAFT, DRAFT.name))
    assert tensors is not None
    write_safetensors(directory / "draft/model.safetensors", tensors)


def command_row(name: str, command: list[str], cwd: Path, times: int) -> str:
    """Medians of one command's wall and CPU seconds and its peak memory; the first run does not count."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    walls, cpus, peaks = [], [], []
    for _ in range(times + 1):
        start = time.perf_counter()
        run = subprocess.run([sys.executable, "-c", CHILD, *command], cwd=cwd, env=env, check=True, capture_output=True)
        walls.append(time.perf_counter() - start)
        code, cpu, peak = json.loads(run.stdout)
        if code != 0:
            raise SystemExit(f"{name} ended with {code}")
        cpus.append(cpu)
        peaks.append(peak)
    middle = statistics.median
    return f"| {name} | {middle(walls[1:]):.2f} s | {middle(cpus[1:]):.2f} s | {middle(peaks[1:]):.0f} MB |"


def device_row(directory: Path, device: str, tokens: int, times: int) -> str:
    """The run alone, without imports, on one device: time and peak memory as torch counts it."""
    import torch

    from eaglelint.artifacts.checkpoint import read_checkpoint
    from eaglelint.artifacts.draft import read_draft
    from eaglelint.artifacts.target import read_target
    from eaglelint.probe.device import peak_memory
    from eaglelint.probe.input_path import InputPath, feeds, input_path
    from eaglelint.probe.shape import run_shapes
    from eaglelint.rule import Facts

    draft = read_draft(directory / "draft", "draft/config.json")
    checkpoint = read_checkpoint(directory / "draft/config.json", "draft/config.json")
    target = read_target(directory / "target", "target/config.json")
    facts = Facts(draft, target, None, (), checkpoint=checkpoint)
    (feed,) = feeds(facts)
    path = input_path(facts, feed)
    assert isinstance(path, InputPath) and checkpoint is not None
    where = torch.device(device)
    wait: Callable[[], None] = torch.cuda.synchronize if device == "cuda" else lambda: None
    files = None if device == "meta" else checkpoint.files
    seconds = []
    for _ in range(times + 1):
        start = time.perf_counter()
        run = run_shapes(path, device=where, tokens=tokens, files=files)
        wait()
        seconds.append(time.perf_counter() - start)
        assert run.passed, run.errors
    name = torch.cuda.get_device_name() if device == "cuda" else device
    peak = f"{peak_memory(where) / 2**20:.0f} MB"
    return f"| {name} | {tokens} | {len(run.steps)} | {statistics.median(seconds[1:]) * 1000:.1f} ms | {peak} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="runs of each")
    parser.add_argument("--tokens", type=int, default=4, help="tokens that are pushed through")
    parser.add_argument("--gpu-only", action="store_true", help="leave out all but the GPU")
    options = parser.parse_args()
    import torch

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        lay_out(directory)
        if not options.gpu_only:
            probe = [sys.executable, "-m", "eaglelint", "probe", ".", "--no-cache", "--device"]
            print("| command | wall | CPU | peak memory |\n|---|---|---|---|")
            for title, command in (
                ('`python -c "import torch"`', [sys.executable, "-c", "import torch"]),
                ("`eaglelint probe --device meta`", [*probe, "meta"]),
                ("`eaglelint probe --device cpu --weights`", [*probe, "cpu", "--weights"]),
            ):
                print(command_row(title, command, directory, options.times))
            print()
        print("| device | tokens | steps | the run alone | peak memory |\n|---|---|---|---|---|")
        for device in () if options.gpu_only else ("meta", "cpu"):
            print(device_row(directory, device, options.tokens, options.times))
        if torch.cuda.is_available():
            print(device_row(directory, "cuda", options.tokens, options.times))
        else:
            print("\nThere is no GPU here: its row is left out.")


if __name__ == "__main__":
    main()
