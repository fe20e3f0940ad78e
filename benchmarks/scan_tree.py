"""How long ``eaglelint scan`` takes over a whole serving engine, beside ``ruff check`` over the same files.

python benchmarks/scan_tree.py            SGLang 0.5.23, fetched by hash into the cache of the real tests
python benchmarks/scan_tree.py DIRECTORY  any tree
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One process, from its start to its end."""

    seconds: float
    cpu: float
    rss: int  # bytes, of the largest of the process and the children it waited for
    code: int


@dataclass(frozen=True)
class Row:
    """A command that was run several times."""

    name: str
    runs: tuple[Run, ...]

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)

    @property
    def rss(self) -> int:
        return max(run.rss for run in self.runs)

    @property
    def code(self) -> int:
        return self.runs[-1].code


def measure(name: str, command: Sequence[str], *, times: int) -> Row:
    """Run a command, its output thrown away; one that could not do its work stops the benchmark."""
    row = Row(name, tuple(_run(command) for _ in range(times)))
    if any(run.code not in (0, 1) for run in row.runs):  # 1: findings
        raise SystemExit(f"{' '.join(command)} ended with code {row.code}; run it by itself to see why.")
    return row


def _run(command: Sequence[str]) -> Run:
    # wait4 tells of this one process; getrusage(RUSAGE_CHILDREN) would tell the largest of all that were run so far.
    with tempfile.TemporaryFile() as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), descriptor) for descriptor in (1, 2)]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        start = time.perf_counter()
        process = os.posix_spawn(command[0], list(command), environment, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
        seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, os.waitstatus_to_exitcode(status))


def read_all(tree: Path) -> tuple[int, int]:
    """The number of Python files and their bytes; reading them takes the disk out of the comparison."""
    sizes = [len(path.read_bytes()) for path in tree.rglob("*.py") if path.is_file()]
    return len(sizes), sum(sizes)


def table(rows: Sequence[Row], base: Row) -> str:
    """The rows as Markdown, for benchmarks/README.md."""
    lines = ["| command | wall | CPU | peak memory | beside " + base.name + " |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.name} | {_time(row.seconds)} | {_time(row.cpu)} | {row.rss / 2**20:.0f} MB"
        f" | {row.seconds / base.seconds:.1f} × |"
        for row in rows
    ]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.5 else f"{seconds * 1000:.0f} ms"


def _default_tree() -> Path:
    sys.path.insert(0, str(_ROOT))
    from tests.real.packages import SGLANG_0_5_23, package_directory

    return package_directory(SGLANG_0_5_23).parent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, help="what to scan; SGLang 0.5.23 if left out")
    parser.add_argument("--times", type=int, default=3, help="runs of each command, of which the median counts")
    options = parser.parse_args()
    tree = (options.tree or _default_tree()).resolve()
    beside = Path(sys.executable).with_name("ruff")
    ruff = str(beside) if beside.is_file() else shutil.which("ruff")
    if ruff is None:
        raise SystemExit("ruff is not installed here: pip install ruff")
    files, size = read_all(tree)
    eaglelint = [sys.executable, "-m", "eaglelint"]
    check = [ruff, "check", "--no-cache", "--isolated", "--quiet"]
    base = measure("`ruff check`", [*check, str(tree)], times=options.times)
    rows = [
        measure("`eaglelint scan`", [*eaglelint, "scan", str(tree)], times=options.times),
        base,
        measure("`ruff check --select F`", [*check, "--select", "F", str(tree)], times=options.times),
        measure("`eaglelint --version`", [*eaglelint, "--version"], times=10),
    ]
    print(f"{date.today()}, {tree.name}: {files:,} files, {size / 2**20:.0f} MB, {os.cpu_count()} cores, ", end="")
    print(f"{platform.system()} {platform.machine()}, Python {platform.python_version()}\n")
    print(table(rows, base))


if __name__ == "__main__":
    main()
