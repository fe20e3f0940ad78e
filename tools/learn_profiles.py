"""Learns the bundled profiles anew: ``python tools/learn_profiles.py [NAME==VERSION ...]``.

The releases are those that tests/real/packages.py pins by hash; they are fetched into the tests' cache. Several
releases take a while: name one to learn it alone, and with ``--class`` some of its classes. ``--drafts`` learns the
classes of drafts alone, in seconds. ``--check`` compares instead of writing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from eaglelint.engines.profile_file import profile_text, read_profile, write_profile  # noqa: E402
from eaglelint.learn.learn import learn_drafts, learn_profile, with_classes  # noqa: E402
from tests.real.packages import PROFILED, package_directory  # noqa: E402

PROFILES = ROOT / "eaglelint/engines/profiles"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", help="NAME==VERSION; all that are bundled if left out")
    parser.add_argument(
        "--class", dest="classes", action="append", default=[], help="learn this one anew, keep the rest"
    )
    parser.add_argument("--drafts", action="store_true", help="learn the classes of drafts anew, keep the rest")
    parser.add_argument("--check", action="store_true", help="say which are not fresh, and write nothing")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    stale = 0
    for package in PROFILED:
        release = f"{package.name}=={package.version}"
        if options.releases and release not in options.releases:
            continue
        path = PROFILES / f"{package.name}-{package.version}.json"
        print(f"learning {release}", file=sys.stderr, flush=True)
        only = tuple(options.classes)
        directory = package_directory(package)
        if options.drafts:
            profile = learn_drafts(read_profile(path, path.name), directory)
        else:
            profile = learn_profile(directory, package.name, processes=options.jobs, only=only)
            if only:
                profile = with_classes(read_profile(path, path.name), profile)
        if not options.check:
            write_profile(profile, path)
        elif not path.is_file() or path.read_text("utf-8") != profile_text(profile):
            print(f"{path.relative_to(ROOT)} is not what is learned now: run tools/learn_profiles.py {release}")
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
