"""The survey of an engine's source: its target classes, file by file, and the facts besides, in several processes."""

from __future__ import annotations

import gc
import multiprocessing
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from eaglelint.cache.units import Unit, active_store, keep_in
from eaglelint.engines.base import Engine, EngineSource
from eaglelint.forks import cores
from eaglelint.recursion import deep_recursion, roomy
from eaglelint.serving import EngineHandle, open_source
from eaglelint.source.index import ClassInfo
from eaglelint.source.snapshot import Dependency, Snapshot
from eaglelint.source.tree import Binding
from eaglelint.survey.adapters import dropped_keys
from eaglelint.survey.begun import BegunJoins
from eaglelint.survey.classes import base_of, own_names, survey_classes
from eaglelint.survey.embeddings import lost_embeddings
from eaglelint.survey.facts import ClassFacts, EngineFacts
from eaglelint.survey.graph_modes import refused_graphs
from eaglelint.survey.norm_stubs import norm_stubs
from eaglelint.survey.readers import readers
from eaglelint.survey.recycling import unlike_states
from eaglelint.survey.reductions import unreduced_captures
from eaglelint.survey.sharing import shared_by_weight
from eaglelint.survey.startup import read_startup
from eaglelint.survey.wrappers import wrappers

__all__ = ["engine_facts", "survey_file", "survey_source"]

_MIN_FILES = 4  # for less, starting processes takes longer than the work
_MANY_OBJECTS = 1_000_000  # a collection looks at all that live: a quarter of a second, for half as many


def survey_source(
    spec: str,
    snapshot: Snapshot,
    unreadable: dict[str, str],
    processes: int | None = None,
    begun: BegunJoins | None = None,
) -> EngineFacts:
    """All facts about an engine's source; files that could not be read are added to ``unreadable``."""
    handle = open_source(spec, root=Path.cwd(), snapshot=snapshot)
    handle.source.tree.unreadable = unreadable
    if begun is not None and begun.package != handle.source.package:
        begun = None
    return _survey(spec, handle, handle.engine.target_classes(handle.source), processes, begun=begun)


def survey_file(spec: str, path: Path) -> EngineFacts:
    """The facts about an engine's source, of its target classes only those that one file defines."""
    handle = open_source(spec, root=Path.cwd())
    found = handle.engine.target_classes(handle.source)
    return _survey(spec, handle, [binding for binding in found if binding.module.path == path], 1, path)


def _survey(
    spec: str,
    handle: EngineHandle,
    classes: Iterable[Binding],
    processes: int | None,
    only: Path | None = None,
    begun: BegunJoins | None = None,
) -> EngineFacts:
    classes = list(classes)
    parts = _parts(handle.source, classes)
    work: list[_Work] = [*parts, *(_FACTS if only is None else ())]
    found: dict[_Work, Any] = {}
    for each in work:
        known = _unit(handle, each).recall()
        if known is not None:
            found[each] = known[0]
    left = [each for each in work if each not in found and (each != "joins" or begun is None)]
    count = min(processes or cores(), sum(isinstance(each, _Part) for each in left) // _MIN_FILES)
    if count > 1:
        _share(spec, handle, left, count, found)
    for each in left:
        if each not in found:
            found[each] = _survey_part(handle, each) if isinstance(each, _Part) else _fact(handle, each)
    if begun is not None and "joins" not in found:
        found["joins"] = _unit(handle, "joins").run(partial(begun.take, handle.source.tree.snapshot))
    if only is not None:
        engine, source = handle.engine, handle.source
        key = (vars(engine), str(only))
        found["wrappers"] = source.remember("wrappers", key, lambda: wrappers(engine, source, only))
    by_class = {key: facts for part in parts for key, facts in zip(part.classes, found[part], strict=True)}
    surveyed = tuple(by_class[_named(binding)] for binding in classes)
    return _engine_facts(handle, surveyed, {what: value for what, value in found.items() if isinstance(what, str)})


def engine_facts(handle: EngineHandle, classes: tuple[ClassFacts, ...]) -> EngineFacts:
    """What an engine's source says besides its target classes, which are given."""
    return _engine_facts(handle, classes, {"wrappers": ()})


def _engine_facts(handle: EngineHandle, classes: tuple[ClassFacts, ...], known: Mapping[str, Any]) -> EngineFacts:
    engine, source = handle.engine, handle.source
    facts = {what: known[what] if what in known else _remembered(handle, what) for what in _FACTS}
    startup = facts["start-up"]
    return EngineFacts(
        name=engine.name,
        label=source.label,
        version=source.version,
        classes=classes,
        setter=engine.setters[0],
        wrappers=facts["wrappers"],
        readers=facts["readers"],
        graphs_before_ids=startup.graphs_before_ids,
        calls_without_ids=startup.calls_without_ids,
        dropped_keys=facts["dropped keys"],
        unreduced=tuple(unreduced_captures(source, classes)),
        joined_while_none=facts["joins"],
        refused_graphs=facts["graph modes"],
        lost_embeddings=facts["lost embeddings"],
        norm_stubs=facts["norm stubs"],
        unlike_states=facts["unlike states"],
        shared_by_weight=facts["shared by weight"],
    )


# --- the pieces of work ---------------------------------------------------------------------------------------------


def _joins(_: Engine, source: EngineSource) -> Any:
    from eaglelint.survey.joined_none import joined_while_none  # it needs the tracer, which nothing else here does

    return joined_while_none(source.package, source.tree.relative_to, source.tree.snapshot)


# The longest first.
_FACTS: Mapping[str, Callable[[Engine, EngineSource], Any]] = {
    "unlike states": unlike_states,
    "lost embeddings": lost_embeddings,
    "joins": _joins,
    "graph modes": refused_graphs,
    "wrappers": wrappers,
    "dropped keys": dropped_keys,
    "readers": readers,
    "shared by weight": shared_by_weight,
    "start-up": read_startup,
    "norm stubs": norm_stubs,
}


@dataclass(frozen=True, slots=True)
class _Part:
    """The target classes of one file, which often rename each other, with those of other files that rename them."""

    classes: tuple[tuple[Path, str], ...]


_Work = _Part | str  # a part, or the name of one of the facts
_OWN = frozenset(["__init__", "forward"])  # whoever defines these is a model of its own


def _parts(source: EngineSource, bindings: Iterable[Binding]) -> list[_Part]:
    files: dict[Path, list[Binding]] = {}
    renaming: list[tuple[Binding, Path]] = []
    bindings = list(bindings)
    targets = {binding.item for binding in bindings}
    for binding in bindings:
        assert isinstance(binding.item, ClassInfo)
        base = base_of(source, binding) if _OWN.isdisjoint(own_names(binding.item)) else None
        if base is not None and base.item in targets and base.module is not binding.module:
            renaming.append((binding, base.module.path))
        else:
            files.setdefault(binding.module.path, []).append(binding)
    for binding, path in renaming:
        files.setdefault(path, []).append(binding)
    return [_Part(tuple(map(_named, found))) for found in files.values()]


def _named(binding: Binding) -> tuple[Path, str]:
    assert isinstance(binding.item, ClassInfo)
    return binding.module.path, binding.item.name


def _unit(handle: EngineHandle, work: _Work) -> Unit[Any]:
    engine, source = handle.engine, handle.source
    if isinstance(work, str):
        return source.unit(work, vars(engine))
    return source.unit("classes", (vars(engine), [(str(path), name) for path, name in work.classes]))


def _survey_part(handle: EngineHandle, part: _Part) -> tuple[ClassFacts, ...]:
    engine, source = handle.engine, handle.source

    def compute() -> tuple[ClassFacts, ...]:
        modules = [source.tree.module_at(path) for path, _ in part.classes]
        named = zip(modules, part.classes, strict=True)
        bindings = [Binding(module, module.index.classes[name]) for module, (_, name) in named if module is not None]
        return tuple(survey_classes(engine, source, bindings))

    return _unit(handle, part).run(compute)  # type: ignore[no-any-return]


def _fact(handle: EngineHandle, what: str) -> Any:
    with deep_recursion():
        return _unit(handle, what).run(lambda: _FACTS[what](handle.engine, handle.source))


def _remembered(handle: EngineHandle, what: str) -> Any:
    known = _unit(handle, what).recall()
    return _fact(handle, what) if known is None else known[0]


# --- several processes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a helping process found, and what of the file system it saw for that."""

    work: _Work
    found: Any
    unreadable: Mapping[str, str]
    answers: Mapping[Dependency, str]


def _share(spec: str, handle: EngineHandle, work: Iterable[_Work], count: int, found: dict[_Work, Any]) -> None:
    tree, store = handle.source.tree, active_store()
    directory = None
    if store is not None:
        directory = store.directory
        store.close()  # each process opens the file for itself
    # The longest first, so that the last ones to end are short: a fact takes as long as a class or two.
    parts = [each for each in work if isinstance(each, _Part)]
    parts.sort(key=lambda part: len(tree.read(part.classes[0][0])), reverse=True)
    facts = [each for each in work if isinstance(each, str)]
    _helping[:] = [handle]  # a fork goes on from what has been read
    with ProcessPoolExecutor(count, mp_context=_context(), initializer=_join, initargs=(spec, directory)) as pool:
        for answer in pool.map(_help, [*facts, *parts]):
            found[answer.work] = answer.found
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


@roomy
def _help(work: _Work) -> _Answer:
    (handle,) = _helping
    tree = handle.source.tree
    with tree.snapshot.noting() as rests:
        found = _survey_part(handle, work) if isinstance(work, _Part) else _fact(handle, work)
    if gc.get_count()[0] > _MANY_OBJECTS:
        gc.collect()
    return _Answer(work, found, dict(tree.unreadable), {asked: tree.snapshot.answers[asked] for asked in rests})


def _context() -> BaseContext:
    """A fork has all modules at once; where it is not safe, or not there, processes start from nothing."""
    if platform.system() == "Linux" and (sys.version_info < (3, 12) or threading.active_count() == 1):
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")
