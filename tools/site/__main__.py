"""Build the site: ``python -m tools.site [DIRECTORY]``. Stops at whatever leads nowhere. Needs the extra ``docs``.

Nothing that is generated is kept: the pages are made anew from what they speak of, so they cannot be out of date.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.site.broken import broken_links
from tools.site.config import zensical_toml
from tools.site.pages import ROOT, site_pages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=ROOT / "build/site", help="default: build/site")
    output: Path = parser.parse_args().directory.absolute()
    with tempfile.TemporaryDirectory() as work:
        for path, text in site_pages().items():
            file = Path(work, "docs", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        # The generator wants the site below its own directory.
        Path(work, "zensical.toml").write_text(zensical_toml(site_dir="site"), encoding="utf-8")
        built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=work, check=False)
        if built.returncode:
            return 1
        output.mkdir(parents=True, exist_ok=True)
        for file in sorted(Path(work, "site").rglob("*")):
            if file.is_file():
                target = output / file.relative_to(Path(work, "site"))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
    broken = broken_links(output)
    for line in broken:
        print(line, file=sys.stderr)
    pages = len(list(output.rglob("*.html")))
    print(f"{pages} pages in {os.path.relpath(output)}, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
