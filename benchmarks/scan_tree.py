"""How long ``eaglelint scan`` takes over a whole serving engine, beside tools that read the same files.

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
sys.path.insert(0, str(_ROOT))


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


def measure(name: str, command: Sequence[str], *, times: int, cache: Path | None = None, cold: bool = False) -> Row:
    """Run a command, its output thrown away; one that could not do its work stops the benchmark.

    ``cache`` is where eaglelint keeps its results; ``cold`` runs find it empty.
    """
    runs = []
    for _ in range(times):
        if cold and cache is not None:
            shutil.rmtree(cache, ignore_errors=True)
        runs.append(_run(command, cache))
    row = Row(name, tuple(runs))
    if any(run.code not in (0, 1) for run in row.runs):  # 1: findings
        raise SystemExit(f"{' '.join(command)} ended with code {row.code}; run it by itself to see why.")
    return row


def _run(command: Sequence[str], cache: Path | None = None) -> Run:
    # wait4 tells of this one process; getrusage(RUSAGE_CHILDREN) would tell the largest of all that were run so far.
    with tempfile.TemporaryFile() as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), descriptor) for descriptor in (1, 2)]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT), "EAGLELINT_CACHE_DIR": str(cache or "/nonexistent")}
        start = time.perf_counter()
        process = os.posix_spawn(command[0], list(command), environment, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
        seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, os.waitstatus_to_exitcode(status))


def beside(name: str, directory: Path | None) -> str | None:
    """A tool that is installed there, else beside this Python, else on the path."""
    for place in (directory, Path(sys.executable).parent):
        if place is not None and (place / name).is_file():
            return str(place / name)
    return shutil.which(name)


def part_of(tree: Path, share: int, into: Path) -> Path:
    """A copy of the tree with one in ``share`` of its Python files below each directory, the first ones in order."""
    for directory, _, names in os.walk(tree):
        python = sorted(name for name in names if name.endswith(".py"))
        kept = [name for name in python if name == "__init__.py"]
        kept += [name for name in python if name != "__init__.py"][::share]
        target = into / tree.name / Path(directory).relative_to(tree)
        target.mkdir(parents=True, exist_ok=True)
        for name in kept:
            shutil.copy2(Path(directory) / name, target / name)
    return into / tree.name


def setters_in(tree: Path) -> list[Path]:
    """The files that define SGLang's setter, in order."""
    return sorted(path for path in tree.rglob("*.py") if b"def " + _setter() in path.read_bytes())


def _setter() -> bytes:
    from eaglelint.engines.sglang import SGLang

    return SGLang.setters[0].encode()


def with_setters(tree: Path, share: int, into: Path) -> Path:
    """A copy in which one in ``share`` of these files still defines it: all that the models are made of is there."""
    copy = into / tree.name
    shutil.copytree(tree, copy, symlinks=True)
    for number, path in enumerate(setters_in(copy)):
        if number % share:
            path.write_bytes(path.read_bytes().replace(_setter(), b"set_nothing"))
    return copy


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


def default_tree() -> Path:
    from tests.real.packages import SGLANG_0_5_23, package_directory

    return package_directory(SGLANG_0_5_23).parent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, help="what to scan; SGLang 0.5.23 if left out")
    parser.add_argument("--times", type=int, default=3, help="runs of each command, of which the median counts")
    parser.add_argument("--tools", type=Path, help="the bin directory of an environment with semgrep and fixit")
    options = parser.parse_args()
    tree = (options.tree or default_tree()).resolve()
    ruff = beside("ruff", options.tools)
    if ruff is None:
        raise SystemExit("ruff is not installed here: pip install ruff")
    times = options.times
    scan = [sys.executable, "-m", "eaglelint", "scan"]
    check = [ruff, "check", "--no-cache", "--isolated", "--quiet"]
    missing = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        cache = scratch / "cache"
        files, size = read_all(tree)
        base = measure("`ruff check`", [*check, str(tree)], times=times)
        rows = [
            measure("`eaglelint scan`, cold", [*scan, str(tree)], times=times, cache=cache, cold=True),
            measure("`eaglelint scan`, warm", [*scan, str(tree)], times=max(times, 5), cache=cache),
            base,
            measure("`eaglelint --version`", [sys.executable, "-m", "eaglelint", "--version"], times=10),
            measure("`eaglelint explain CAP002`", [*scan[:-1], "explain", "CAP002"], times=10),
        ]
        models = next(
            (path for path in sorted(tree.rglob("models")) if (path.parent / "models" / "llama.py").is_file()), None
        )
        semgrep, fixit = beside("semgrep", options.tools), beside("fixit", options.tools)
        if semgrep is None:
            missing.append(
                "semgrep is not installed here and was left out: pip install semgrep elsewhere, and --tools."
            )
        else:
            pattern = ["--metrics=off", "--disable-version-check", "--no-git-ignore", "-q", "-l", "py"]
            command = [semgrep, "scan", *pattern, "-e", "$X.append($A + $B)", str(tree)]
            rows.append(measure("semgrep, one pattern", command, times=1))
        if fixit is None or models is None:
            missing.append("Fixit is not installed here and was left out: pip install fixit (--tools).")
        else:
            rows.append(measure("Fixit, the directory of models alone", [fixit, "lint", str(models)], times=1))
        print(f"{date.today()}, {tree.name}: {files:,} files, {size / 2**20:.0f} MB, {os.cpu_count()} cores, ", end="")
        print(f"load {os.getloadavg()[0]:.1f}, ", end="")
        print(f"{platform.system()} {platform.machine()}, Python {platform.python_version()}\n")
        print(table(rows, base))
        print("\n| share of the files | files | wall | CPU | CPU for each 1,000 files |\n|---|---|---|---|---|")
        for share in (4, 2, 1):
            part = tree if share == 1 else part_of(tree, share, scratch / str(share))
            count, _ = read_all(part)
            row = rows[0] if share == 1 else measure("", [*scan, str(part)], times=times, cache=cache, cold=True)
            each = row.cpu / count * 1000
            print(f"| 1/{share} | {count:,} | {_time(row.seconds)} | {_time(row.cpu)} | {each:.2f} s |")
        setters = setters_in(tree)
        if setters:
            print("\n| share of the setters | files with one | wall | CPU |\n|---|---|---|---|")
        for share in (4, 2, 1) if setters else ():
            part = tree if share == 1 else with_setters(tree, share, scratch / f"setters-{share}")
            row = rows[0] if share == 1 else measure("", [*scan, str(part)], times=times, cache=cache, cold=True)
            print(f"| 1/{share} | {len(setters[::share]):,} | {_time(row.seconds)} | {_time(row.cpu)} |")
    print(*missing, sep="\n")


if __name__ == "__main__":
    main()
