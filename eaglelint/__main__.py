"""The way in: ``eaglelint`` and ``python -m eaglelint``."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. ``--version`` alone is answered before anything is imported."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from eaglelint import __version__

        print(f"eaglelint {__version__}")
        return
    gc.set_threshold(300_000)  # What imports make stays: to walk it again and again costs a tenth of a short run.
    from eaglelint.cli.app import run

    try:
        run()
    finally:
        gc.freeze()  # Ending frees all of it; without this the collector first walks what was imported.


if __name__ == "__main__":
    main()
