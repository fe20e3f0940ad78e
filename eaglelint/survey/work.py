"""The survey of an engine's source: its target classes, file by file in several processes, and its start-up."""

from __future__ import annotations

import gc
import multiprocessing
import platform
import sys
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.context import BaseContext
from pathlib import Path

from eaglelint.cache.units import Unit, active_store, keep_in
from eaglelint.derive import deep_recursion
from eaglelint.forks import cores
from eaglelint.serving import EngineHandle, open_source
from eaglelint.source.index import ClassInfo
from eaglelint.source.snapshot import Dependency, Snapshot
from eaglelint.source.tree import Binding
from eaglelint.survey.adapters import dropped_keys
from eaglelint.survey.classes import survey_classes
from eaglelint.survey.embeddings import lost_embeddings
from eaglelint.survey.facts import ClassFacts, EngineFacts
from eaglelint.survey.graph_modes import refused_graphs
from eaglelint.survey.joined_none import joined_while_none
from eaglelint.survey.norm_stubs import norm_stubs
from eaglelint.survey.readers import readers
from eaglelint.survey.recycling import unlike_states
from eaglelint.survey.reductions import unreduced_captures
from eaglelint.survey.sharing import shared_by_weight
from eaglelint.survey.startup import read_startup
from eaglelint.survey.wrappers import wrappers

__all__ = ["engine_facts", "survey_file", "survey_source"]

_MIN_FILES = 4  # for less, starting processes takes longer than the work
_MANY_OBJECTS = 400_000


def survey_source(
    spec: str, snapshot: Snapshot, unreadable: dict[str, str], processes: int | None = None
) -> EngineFacts:
    """All facts about an engine's source; files that could not be read are added to ``unreadable``."""
    handle = open_source(spec, root=Path.cwd(), snapshot=snapshot)
    handle.source.tree.unreadable = unreadable
    return _survey(spec, handle, handle.engine.target_classes(handle.source), processes)


def survey_file(spec: str, path: Path) -> EngineFacts:
    """The facts about an engine's source, of its target classes only those that one file defines."""
    handle = open_source(spec, root=Path.cwd())
    found = handle.engine.target_classes(handle.source)
    return _survey(spec, handle, [binding for binding in found if binding.module.path == path], 1, path)


def _survey(
    spec: str, handle: EngineHandle, classes: Iterable[Binding], processes: int | None, only: Path | None = None
) -> EngineFacts:
    parts = _by_file(classes)
    found: dict[_Part, tuple[ClassFacts, ...]] = {}
    for part in parts:
        known = _unit(handle, part).recall()
        if known is not None:
            found[part] = known[0]
    left = [part for part in parts if part not in found]
    count = min(processes or cores(), len(left) // _MIN_FILES)
    if count > 1:
        _share(spec, handle, left, count, found)
    for part in left:
        if part not in found:
            found[part] = _survey_part(handle, part)
    engine, source = handle.engine, handle.source
    return replace(
        engine_facts(handle, tuple(facts for part in parts for facts in found[part])),
        wrappers=source.remember(
            "wrappers", (vars(engine), None if only is None else str(only)), lambda: wrappers(engine, source, only)
        ),
    )


def engine_facts(handle: EngineHandle, classes: tuple[ClassFacts, ...]) -> EngineFacts:
    """What an engine's source says besides its target classes, which are given."""
    engine, source = handle.engine, handle.source
    with deep_recursion():
        startup = source.remember("start-up", vars(engine), lambda: read_startup(engine, source))
        lost = source.remember("lost embeddings", vars(engine), lambda: lost_embeddings(engine, source))
        unlike = source.remember("unlike states", vars(engine), lambda: unlike_states(engine, source))
        refused = source.remember("graph modes", vars(engine), lambda: refused_graphs(engine, source))
    return EngineFacts(
        name=engine.name,
        label=source.label,
        version=source.version,
        classes=classes,
        setter=engine.setters[0],
        readers=source.remember("readers", vars(engine), lambda: readers(engine, source)),
        graphs_before_ids=startup.graphs_before_ids,
        calls_without_ids=startup.calls_without_ids,
        dropped_keys=source.remember("dropped keys", vars(engine), lambda: dropped_keys(engine, source)),
        unreduced=tuple(unreduced_captures(source, classes)),
        joined_while_none=source.remember("joins", (), lambda: joined_while_none(source)),
        refused_graphs=refused,
        lost_embeddings=lost,
        norm_stubs=source.remember("norm stubs", vars(engine), lambda: norm_stubs(engine, source)),
        unlike_states=unlike,
        shared_by_weight=source.remember("shared by weight", vars(engine), lambda: shared_by_weight(engine, source)),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The target classes of one file, which often rename each other."""

    path: Path
    names: tuple[str, ...]


def _by_file(bindings: Iterable[Binding]) -> list[_Part]:
    files: dict[Path, list[str]] = {}
    for binding in bindings:
        assert isinstance(binding.item, ClassInfo)
        files.setdefault(binding.module.path, []).append(binding.item.name)
    return [_Part(path, tuple(names)) for path, names in files.items()]


def _unit(handle: EngineHandle, part: _Part) -> Unit[tuple[ClassFacts, ...]]:
    return handle.source.unit("classes", (vars(handle.engine), str(part.path), part.names))


def _survey_part(handle: EngineHandle, part: _Part) -> tuple[ClassFacts, ...]:
    engine, source = handle.engine, handle.source

    def compute() -> tuple[ClassFacts, ...]:
        module = source.tree.module_at(part.path)
        assert module is not None
        return tuple(
            survey_classes(engine, source, [Binding(module, module.index.classes[name]) for name in part.names])
        )

    return _unit(handle, part).run(compute)


# --- several processes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a helping process found of one part, and what of the file system it saw for that."""

    part: _Part
    classes: tuple[ClassFacts, ...]
    unreadable: Mapping[str, str]
    answers: Mapping[Dependency, str]


def _share(
    spec: str, handle: EngineHandle, parts: list[_Part], count: int, found: dict[_Part, tuple[ClassFacts, ...]]
) -> None:
    tree, store = handle.source.tree, active_store()
    directory = None
    if store is not None:
        directory = store.directory
        store.close()  # each process opens the file for itself
    # The longest first, so that the last ones to end are short.
    parts = sorted(parts, key=lambda part: len(tree.read(part.path)), reverse=True)
    _helping[:] = [handle]  # a fork goes on from what has been read
    with ProcessPoolExecutor(count, mp_context=_context(), initializer=_join, initargs=(spec, directory)) as pool:
        for answer in pool.map(_help, parts):
            found[answer.part] = answer.classes
            tree.unreadable.update(answer.unreadable)
            tree.snapshot.adopt(answer.answers)
    _helping.clear()


_helping: list[EngineHandle] = []  # in a helping process: the engine that it helps with


def _join(spec: str, directory: Path | None) -> None:
    keep_in(directory)
    gc.freeze()
    gc.disable()
    if not _helping:
        _helping.append(open_source(spec, root=Path.cwd()))
    _helping[0].source.tree.snapshot.stamps = active_store()


def _help(part: _Part) -> _Answer:
    (handle,) = _helping
    tree = handle.source.tree
    with tree.snapshot.noting() as rests:
        classes = _survey_part(handle, part)
    if gc.get_count()[0] > _MANY_OBJECTS:
        gc.collect()
    return _Answer(part, classes, dict(tree.unreadable), {asked: tree.snapshot.answers[asked] for asked in rests})


def _context() -> BaseContext:
    """A fork has all modules at once; where it is not safe, or not there, processes start from nothing."""
    if platform.system() == "Linux" and (sys.version_info < (3, 12) or threading.active_count() == 1):
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")
