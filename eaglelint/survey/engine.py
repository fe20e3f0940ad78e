"""All facts about an engine's source: its target classes, in several processes, and its start-up."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from eaglelint.derive import deep_recursion
from eaglelint.serving import EngineHandle, open_source
from eaglelint.source.index import ClassInfo
from eaglelint.source.tree import Binding
from eaglelint.survey.classes import survey_classes
from eaglelint.survey.facts import ClassFacts, EngineFacts
from eaglelint.survey.startup import graphs_before_ids

__all__ = ["Surveyed", "engine_facts", "survey"]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The facts, and sentences on files that could not be read."""

    facts: EngineFacts
    problems: tuple[str, ...]


def survey(spec: str, *, processes: int = 2) -> Surveyed:
    """Read an engine's tree as a whole.

    Args:
        spec: The engine, as for ``--serving``.
        processes: How many share the work where there is enough of it.
    """
    handle = open_source(spec, root=Path.cwd())
    bindings = handle.engine.target_classes(handle.source)
    classes: list[ClassFacts] = []
    if processes > 1 and len(bindings) > 8:
        chunks = _chunks(bindings, processes)
        with ProcessPoolExecutor(processes) as pool:
            for part in pool.map(_survey_named, [spec] * len(chunks), chunks):
                classes += part
    else:
        classes = survey_classes(handle.engine, handle.source, bindings)
    order = {_name(binding): index for index, binding in enumerate(bindings)}
    classes.sort(key=lambda facts: order.get(facts.name, 0))
    facts = engine_facts(handle, tuple(classes))
    return Surveyed(facts, tuple(handle.source.tree.unreadable.values()))


def engine_facts(handle: EngineHandle, classes: tuple[ClassFacts, ...]) -> EngineFacts:
    """What an engine's source says besides its target classes, which are given."""
    engine, source = handle.engine, handle.source
    with deep_recursion():
        return EngineFacts(
            name=engine.name,
            label=source.label,
            version=source.version,
            classes=classes,
            graphs_before_ids=graphs_before_ids(engine, source),
        )


def _survey_named(spec: str, names: list[str]) -> list[ClassFacts]:
    handle = open_source(spec, root=Path.cwd())
    bindings = [handle.engine.target_class(handle.source, name) for name in names]
    return survey_classes(handle.engine, handle.source, [binding for binding in bindings if binding is not None])


def _chunks(bindings: Sequence[Binding], count: int) -> list[list[str]]:
    """The classes' names in ``count`` parts; classes of one file stay together, for they often rename each other."""
    files: dict[Path, list[str]] = {}
    for binding in bindings:
        files.setdefault(binding.module.path, []).append(_name(binding))
    chunks: list[list[str]] = [[] for _ in range(count)]
    for names in files.values():
        min(chunks, key=len).extend(names)
    return chunks


def _name(binding: Binding) -> str:
    assert isinstance(binding.item, ClassInfo)
    return binding.item.name
