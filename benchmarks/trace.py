"""How long ``eaglelint trace`` takes over a whole serving engine, beside ``grep -rnw`` and ``ruff check``.

python benchmarks/trace.py                 SGLang 0.5.23, fetched by hash into the cache of the real tests
python benchmarks/trace.py DIRECTORY       any tree
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scan_tree import beside, default_tree, measure, read_all, table

_SYMBOLS = ("aux_pruned_states", "layers_to_capture", "aux_hidden_states", "eagle_aux_hidden_state_layer_ids")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, help="a directory; SGLang 0.5.23 if left out")
    parser.add_argument("--times", type=int, default=3, help="runs of each command; the median counts")
    options = parser.parse_args()
    tree: Path = options.tree or default_tree()
    files, size = read_all(tree)
    print(f"{tree}: {files:,} files, {size / 1e6:.0f} MB\n")
    ruff, grep = beside("ruff", None), beside("grep", None)
    if ruff is None or grep is None:
        raise SystemExit("ruff or grep is not installed: pip install -e '.[dev]'.")
    here, times = str(tree), options.times
    base = measure("`ruff check`", [ruff, "check", "--no-cache", "--isolated", here], times=times)
    rows = [
        measure(f"`eaglelint trace {symbol}`", [sys.executable, "-m", "eaglelint", "trace", symbol, here], times=times)
        for symbol in _SYMBOLS
    ]
    rows.append(measure("`grep -rnw`", [grep, "-rnw", "--include=*.py", _SYMBOLS[2], here], times=times))
    print(table([*rows, base], base))


if __name__ == "__main__":
    main()
