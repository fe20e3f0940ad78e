"""A draft's config beside its target's: what a commit waits for (a cold start) and an editor (a warm process)."""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eaglelint.report.full import render_full
from eaglelint.report.printer import Printer
from eaglelint.session import Inputs, open_session

ROOT = Path(__file__).parents[1]
DRAFTS = ROOT / "tests" / "published" / "drafts"
TARGETS = ROOT / "tests" / "published" / "targets"
DRAFT, TARGET = "AQ-MedAI__Kimi-K25-eagle3.json", "kimi-k2.5.json"


def measure(command: list[str], cwd: Path, times: int) -> tuple[float, float]:
    """Medians of wall and CPU seconds; the first run, which fills the caches, does not count."""
    walls, cpus = [], []
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # A user's Python keeps what it has compiled.
    for _ in range(times + 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=cwd, env=env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls[1:]), statistics.median(cpus[1:])


def measure_warm(directory: Path, times: int) -> tuple[float, float]:
    """Medians of wall and CPU seconds of a check by a process that has made one before: found, read, asked, printed."""
    walls, cpus = [], []
    for _ in range(times + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        result = open_session(Inputs(paths=[directory])).scan()
        render_full(result.findings, printer=Printer(io.StringIO()))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls[1:]), statistics.median(cpus[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7, help="runs of each command")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for part, source in (("draft", DRAFTS / DRAFT), ("target", TARGETS / TARGET)):
            (directory / part).mkdir()
            (directory / part / "config.json").write_bytes(source.read_bytes())
        header = json.dumps({"fc.weight": {"dtype": "BF16", "shape": [7168, 21504], "data_offsets": [0, 308281344]}})
        with (directory / "draft" / "model.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header.encode())
            file.truncate(8 + len(header) + 308281344)
        python = [sys.executable]
        rows = {
            "eaglelint scan": [*python, "-m", "eaglelint", "scan", "."],
            "eaglelint --version": [*python, "-m", "eaglelint", "--version"],
            'python -c "import pydantic, typer, rich.console"': [*python, "-c", "import pydantic, typer, rich.console"],
            'python -c "import pydantic"': [*python, "-c", "import pydantic"],
            "python -c pass": [*python, "-c", "pass"],
        }
        found = {row: measure(command, directory, times) for row, command in rows.items()}
        warm = measure_warm(directory, 20 * times)
    base = found['python -c "import pydantic"'][1]
    print("| command | wall | CPU | beside `import pydantic` (CPU) |\n|---|---|---|---|")
    for row, (wall, cpu) in found.items():
        print(f"| `{row}` | {wall * 1000:.0f} ms | {cpu * 1000:.0f} ms | {cpu / base:.1f} × |")
    wall, cpu = warm
    print(f"| a check in a warm process | {wall * 1000:.1f} ms | {cpu * 1000:.1f} ms | {cpu / base:.2f} × |")


if __name__ == "__main__":
    main()
