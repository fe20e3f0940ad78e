"""What ``--trained-by`` names: a training stack's source tree, or its installed package."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from eaglelint.cache.units import active_store
from eaglelint.engines.release import package_version
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.source.snapshot import Snapshot
from eaglelint.source.tree import SourceTree
from eaglelint.trainers.angelslim import AngelSlim
from eaglelint.trainers.base import Trainer, TrainerSource
from eaglelint.trainers.dflash import DFlash
from eaglelint.trainers.eagle import Eagle
from eaglelint.trainers.modelopt import ModelOpt
from eaglelint.trainers.specforge import SpecForge
from eaglelint.trainers.speculators import Speculators
from eaglelint.trainers.stack import TrainerHandle
from eaglelint.trainers.torchspec import TorchSpec

__all__ = ["TRAINERS", "is_trainer", "open_trainer"]

TRAINERS: dict[str, Trainer] = {
    trainer.name: trainer
    for trainer in (SpecForge(), Speculators(), ModelOpt(), TorchSpec(), Eagle(), DFlash(), AngelSlim())
}

_SPEC = re.compile(r"([A-Za-z0-9_.-]+?)(?:@(.+)|==(.+))?")


def is_trainer(spec: str) -> bool:
    """Whether a ``--trained-by`` value names a training stack, not a convention of ids."""
    found = _SPEC.fullmatch(spec.strip())
    return found is not None and _name(found.group(1)) in TRAINERS


def open_trainer(spec: str, *, root: Path, display_root: Path | None = None) -> TrainerHandle:
    """Find the source that a ``--trained-by`` value names.

    Args:
        spec: ``specforge@PATH`` a checkout or unpacked wheel, ``specforge`` the installed package, ``specforge==0.2.0``
            the installed package, which must be of that release.
        root: What relative paths are relative to.
        display_root: What shown paths are relative to; the working directory if left out.

    Raises:
        WrongUsage: The stack is not known, or another release is installed.
        UnreadableInput: There is no such stack at the path, or it is not installed.
    """
    found = _SPEC.fullmatch(spec.strip())
    name = _name(found.group(1)) if found else ""
    if found is None or name not in TRAINERS:
        raise WrongUsage(
            f"--trained-by {spec}: no training stack of that name is known. Known are {', '.join(sorted(TRAINERS))}. "
            "Or say what the config's ids mean, layer-output (id i is h[i+1]) or boundary (id i is h[i]); a trainer's "
            "own code is read with --training PATH."
        )
    trainer, path, version = TRAINERS[name], found.group(2), found.group(3)
    if path is not None:
        directory = (root / path).resolve() if not Path(path).is_absolute() else Path(path)
        if not directory.exists():
            raise UnreadableInput(f"--trained-by {spec}: there is no {path}.")
        package = trainer.find_package(directory)
        if package is None:
            raise UnreadableInput(
                f"--trained-by {spec}: {path} holds no {name} source that is understood. "
                f"Pass the directory that holds {name}/, or {name}/ itself."
            )
    else:
        package = _installed(trainer)
        if package is None:
            raise UnreadableInput(
                f"--trained-by {spec}: {name} is not installed here. Pass its source, --trained-by {name}@PATH."
            )
        installed = package_version(package)
        if version is not None and version != installed:
            raise WrongUsage(
                f"--trained-by {spec}: {name} {installed or 'of an unknown release'} is installed here. "
                f"Unpack {name} {version} and pass --trained-by {name}@PATH."
            )
    beside = dict.fromkeys(("scripts", "tools", *(str(Path(file).parent) for file in TRAINERS[name].recipe.scripts)))
    scripts = [parent / directory for parent in package.parents[:2] for directory in beside]
    roots = (package.parent, *(directory for directory in scripts if directory.is_dir()))
    tree = SourceTree(roots, relative_to=display_root or Path.cwd(), snapshot=Snapshot(active_store()))
    return TrainerHandle(trainer, TrainerSource(trainer.name, package, package_version(package), tree))


def _name(text: str) -> str:
    return text.lower().replace("_", "-")


def _installed(trainer: Trainer) -> Path | None:
    """The installed package's directory, found on the path and never imported."""
    for entry in sys.path:
        directory = Path(entry or ".")
        package = trainer.find_package(directory) if directory.is_dir() else None
        if package is not None:
            return package
    return None
