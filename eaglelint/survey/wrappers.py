"""Target classes that wrap a model with a setter and have none themselves: the runner calls it on the outer one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from eaglelint.engines.base import Engine, EngineSource
from eaglelint.engines.heirs import MAKES
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Slice
from eaglelint.source.tree import Binding
from eaglelint.source.values import ClassValue, Function
from eaglelint.source.walk import walk
from eaglelint.survey.facts import Wrapper
from eaglelint.survey.places import place_of_definition, place_of_node

__all__ = ["wrappers"]


def wrappers(engine: Engine, source: EngineSource, only: Path | None = None) -> tuple[Wrapper, ...]:
    """Each class of an engine's registry whose ``__init__`` makes a model that has a setter, without one of its own.

    With ``only``, those that this file defines.
    """
    machine = Machine(source.tree)
    classes, capturing = engine.wrapping_classes(source)
    entries = [binding for binding in classes if only in (None, binding.module.path)]
    return tuple(found for binding in entries if (found := _wrapper(machine, engine, binding, capturing)))


def _wrapper(machine: Machine, engine: Engine, binding: Binding, capturing: frozenset[str]) -> Wrapper | None:
    info = binding.item
    assert isinstance(info, ClassInfo)
    cls = ClassValue(binding.module, info)
    start = find_method(machine, cls, "__init__")
    if start is None or any(find_method(machine, cls, name) for name in engine.setters):
        return None
    text = start.module.text(start.info.line, start.info.end_line)
    for name in dict.fromkeys(made.decode() for made in MAKES.findall(text.encode())):
        bound = machine.tree.resolve(start.module, name) if name in capturing else None
        if not isinstance(bound, Binding) or not isinstance(bound.item, ClassInfo):
            continue
        inner = ClassValue(bound.module, bound.item)
        setter = next((found for found in (find_method(machine, inner, s) for s in engine.setters) if found), None)
        made = next(_made(start, name), None) if setter is not None else None
        if setter is not None and made is not None:
            return Wrapper(
                info.name,
                place_of_definition(binding.module, info),
                bound.item.name,
                place_of_node(*made),
                place_of_definition(setter.module, setter.info),
            )
    return None


def _made(start: Function, name: str) -> Iterator[tuple[Slice, cst.CSTNode]]:
    """The calls in an ``__init__`` by which ``self.SOMETHING`` becomes an object of that class."""
    piece = start.module.slice(start.info.line, start.info.end_line)
    for node in walk(piece.body[0]):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute())], value=cst.Call(func=cst.Name(value=called))
            ) if called == name:
                yield piece, node
            case cst.AnnAssign(target=cst.Attribute(), value=cst.Call(func=cst.Name(value=called))) if called == name:
                yield piece, node
