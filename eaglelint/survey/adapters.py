"""Keys that an engine's adapter of a draft's config does not hand on, though the draft's class reads them.

An adapter rewrites a config of another format: it is a list of the keys that it copies. A syntactic fact: what it
writes is what its own text assigns, and that of the adapters it calls; what a class reads is every
``getattr(config, "key", default)`` in its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from eaglelint.engines.base import ConfigAdapters, Engine, EngineSource
from eaglelint.source.index import FunctionInfo
from eaglelint.source.slices import Slice
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.walk import walk
from eaglelint.survey.facts import DroppedKey, Place
from eaglelint.survey.places import place_of_definition, place_of_node
from eaglelint.survey.readers import functions_of

__all__ = ["dropped_keys"]


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of a key with a default: what a config without the key comes to."""

    default: str
    place: Place


@dataclass(frozen=True, slots=True)
class _Adapter:
    name: str
    place: Place
    writes: frozenset[str]
    classes: tuple[Binding, ...]


def dropped_keys(engine: Engine, source: EngineSource) -> tuple[DroppedKey, ...]:
    """Each key that a class reads and the adapter that leads to it does not write."""
    if not isinstance(engine, ConfigAdapters):
        return ()
    adapters = [_read_adapter(engine, source, name, binding) for name, binding in engine.adapters(source).items()]
    found: list[DroppedKey] = []
    for adapter in adapters:
        for module in {binding.module.name: binding.module for binding in adapter.classes}.values():
            others = [other for other in adapters if any(cls.module is module for cls in other.classes)]
            for key, read in _reads(module).items():
                if key not in adapter.writes:
                    by = next((other for other in others if key in other.writes), None)
                    by_name, by_place = (None, None) if by is None else (by.name, by.place)
                    found.append(
                        DroppedKey(adapter.name, key, read.default, adapter.place, read.place, by_name, by_place)
                    )
    return tuple(found)


def _read_adapter(engine: ConfigAdapters, source: EngineSource, name: str, binding: Binding) -> _Adapter:
    module, info = binding.module, binding.item
    assert isinstance(info, FunctionInfo)
    writes, strings = _written(module, info, set())
    classes = (engine.draft_binding(source, text) for text in sorted(strings))
    return _Adapter(
        name, place_of_definition(module, info), frozenset(writes), tuple(cls for cls in classes if cls is not None)
    )


def _written(module: SourceModule, info: FunctionInfo, seen: set[str]) -> tuple[set[str], set[str]]:
    """The keys that a function assigns, and all strings in it; both with those of the functions it calls."""
    seen.add(info.name)
    try:
        piece = module.slice(info.line, info.end_line)
    except SyntaxError:
        return set(), set()
    keys, strings = set[str](), set[str]()
    for node in walk(piece.body[0]):
        match node:
            case cst.SimpleString():
                strings.add(str(node.evaluated_value))
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(slice=[element]))]):
                keys |= _keys(element, piece)
            case cst.DictElement(key=cst.SimpleString() as key):
                keys.add(str(key.evaluated_value))
            case cst.Call(func=cst.Name(value=name)) if name in module.index.functions and name not in seen:
                more, others = _written(module, module.index.functions[name], seen)
                keys |= more
                strings |= others
    return keys, strings


def _keys(element: cst.SubscriptElement, piece: Slice) -> set[str]:
    """The keys that one assignment may write: a string, or those that a loop goes through."""
    match element.slice:
        case cst.Index(value=cst.SimpleString() as key):
            return {str(key.evaluated_value)}
        case cst.Index(value=cst.Name(value=name)):
            loops = (node for node in walk(piece.body[0]) if isinstance(node, cst.For))
            return {
                str(item.evaluated_value)
                for loop in loops
                if isinstance(loop.target, cst.Name) and loop.target.value == name
                for item in walk(loop.iter)
                if isinstance(item, cst.SimpleString)
            }
    return set()


def _reads(module: SourceModule) -> dict[str, _Read]:
    """The keys that a file reads from a config with a default; the first read of each."""
    found: dict[str, _Read] = {}
    for _, info in functions_of(module):
        if "getattr(" not in module.text(info.line, info.end_line):
            continue
        try:
            piece = module.slice(info.line, info.end_line)
        except SyntaxError:
            continue
        for key, default, node in _config_reads(piece):
            found.setdefault(key, _Read(default, place_of_node(piece, node)))
    return found


def _config_reads(piece: Slice) -> Iterator[tuple[str, str, cst.CSTNode]]:
    for node in walk(piece.body[0]):
        match node:
            case cst.Call(
                func=cst.Name(value="getattr"),
                args=[cst.Arg(value=holder), cst.Arg(value=cst.SimpleString() as key), cst.Arg(value=default)],
            ) if piece.code(holder).rpartition(".")[2] in ("config", "hf_config"):
                yield str(key.evaluated_value), piece.code(default), node
