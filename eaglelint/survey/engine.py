"""All facts about an engine's source: as an earlier scan found them where nothing has changed since, else found now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eaglelint.cache.units import active_store, remember
from eaglelint.engines.release import package_version
from eaglelint.source.snapshot import Snapshot
from eaglelint.survey.begun import begin_joins
from eaglelint.survey.facts import EngineFacts

__all__ = ["Surveyed", "survey"]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The facts, and sentences on files that could not be read."""

    facts: EngineFacts
    problems: tuple[str, ...]


def survey(spec: str, *, processes: int | None = None) -> Surveyed:
    """Read an engine's tree as a whole.

    Args:
        spec: The engine and the directory of its package, ``sglang@PATH``.
        processes: How many share the work where there is enough of it; one for each core if left out.
    """
    snapshot = Snapshot(active_store())
    unreadable: dict[str, str] = {}

    here = Path.cwd()
    path = Path(spec.partition("@")[2])

    def compute() -> EngineFacts:
        package = path if path.is_absolute() else (here / path).resolve()
        begun = begin_joins(package, here, snapshot) if processes != 1 else None

        from eaglelint.survey.work import survey_source

        return survey_source(spec, snapshot, unreadable, processes, begun)

    # What was found before needs none of the modules that find it.
    parts = (spec, package_version(path), str(here))
    facts = remember("survey", parts, snapshot, compute, notes=unreadable, display=_shown)
    return Surveyed(facts, tuple(unreadable[name] for name in sorted(unreadable)))


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()
