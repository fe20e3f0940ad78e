"""What ``--serving`` names: an engine's source tree, its installed package, or a release."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from eaglelint.engines.base import Engine, EngineSource
from eaglelint.engines.sglang import SGLang
from eaglelint.engines.vllm import VLLM
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.source.tree import SourceTree

__all__ = ["ENGINES", "EngineHandle", "open_serving"]

ENGINES: dict[str, Engine] = {"sglang": SGLang(), "vllm": VLLM()}


@dataclass(frozen=True, slots=True)
class EngineHandle:
    """An engine together with the source to interpret."""

    engine: Engine
    source: EngineSource


def open_serving(spec: str, *, root: Path, display_root: Path | None = None) -> EngineHandle:
    """Find the source that a ``--serving`` value names.

    Args:
        spec: ``sglang@PATH`` a source tree or unpacked package, ``sglang`` the installed package (found without
            importing it), ``sglang==0.5.9`` a release.
        root: What relative paths are relative to.
        display_root: What shown paths are relative to; the working directory if left out.

    Raises:
        WrongUsage: The engine is not known, or the release has no bundled profile.
        UnreadableInput: There is no such engine at the path, or it is not installed.
    """
    found = re.fullmatch(r"([A-Za-z0-9_.-]+?)(?:@(.+)|==(.+))?", spec.strip())
    name = found.group(1).lower().replace("_", "-") if found else spec
    if found is None or name not in ENGINES:
        raise WrongUsage(
            f"--serving {spec}: no engine of that name is known. Known are {', '.join(sorted(ENGINES))}; "
            "write sglang@PATH for a source tree or sglang for the installed package."
        )
    engine, path, version = ENGINES[name], found.group(2), found.group(3)
    if version is not None:
        raise WrongUsage(
            f"--serving {spec}: this release of eaglelint bundles no profile for {name} {version}. Give its source: "
            f"pip download --no-deps {name}=={version}, unpack the wheel, and pass --serving {name}@DIRECTORY."
        )
    if path is None:
        package = _installed(engine)
        if package is None:
            raise UnreadableInput(
                f"--serving {spec}: {name} is not installed here. Pass its source, --serving {name}@PATH."
            )
    else:
        directory = (root / path).resolve() if not Path(path).is_absolute() else Path(path)
        if not directory.exists():
            raise UnreadableInput(
                f"--serving {spec}: there is no {path}. Pass the directory that holds the package {name}."
            )
        package = engine.find_package(directory)
        if package is None:
            raise UnreadableInput(
                f"--serving {spec}: {path} holds no {name} package. "
                f"Pass the directory that holds {name}/, or {name}/ itself."
            )
    tree = SourceTree((package.parent,), relative_to=display_root or Path.cwd())
    return EngineHandle(engine, EngineSource(engine.name, package, package_version(package), tree))


def _installed(engine: Engine) -> Path | None:
    """The installed package's directory, found on the path and never imported."""
    for entry in sys.path:
        directory = Path(entry or ".")
        if (directory / engine.name).is_dir():
            package = engine.find_package(directory / engine.name)
            if package is not None:
                return package
    return None


def package_version(package: Path) -> str | None:
    """The release of a package: from the metadata beside it, else from its version file."""
    for metadata in sorted(package.parent.glob(f"{package.name}-*.dist-info/METADATA")):
        found = re.search(r"^Version:\s*(\S+)", metadata.read_text("utf-8", "replace"), re.M)
        if found:
            return found.group(1)
    for name in ("_version.py", "version.py", "__init__.py"):
        file = package / name
        if file.is_file():
            found = re.search(
                r"""^__version__\s*(?::\s*\w+\s*)?=.*?["']([0-9][^"']*)["']""", file.read_text("utf-8", "replace"), re.M
            )
            if found:
                return found.group(1)
    return None
