"""Functions of an engine that look for layer ids in a draft's config: at which keys, on which line, under which except.

A syntactic fact: a key path is what a function's own text says, a string read from a name that holds a section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from eaglelint.artifacts.draft_kinds import IDS_KEYS
from eaglelint.engines.base import Engine, EngineSource
from eaglelint.source.index import FunctionInfo
from eaglelint.source.slices import Slice
from eaglelint.source.tree import SourceModule
from eaglelint.source.walk import children, walk
from eaglelint.survey.facts import KeyRead, Place, Reader
from eaglelint.survey.places import place_of_definition, place_of_node

__all__ = ["functions_of", "readers"]

_SECTIONS = ("eagle_config", "dflash_config", "dspark_config")
_KEYS = {key: sections for key, sections in IDS_KEYS.items() if "layer" in key}
_MENTIONS = re.compile("|".join(rf"""["']{key}["']""" for key in _KEYS).encode())


def readers(engine: Engine, source: EngineSource) -> tuple[Reader, ...]:
    """Every function that reads ids from a config, in the directories that an engine starts up from."""
    found: list[Reader] = []
    for directory in engine.startup(source):
        for path in source.tree.files(directory):
            if not _MENTIONS.search(source.tree.read(path)):
                continue
            module = source.tree.module_at(path)
            for name, info in functions_of(module) if module is not None else ():
                assert module is not None
                if _MENTIONS.search(module.text(info.line, info.end_line).encode()):
                    found += _reader(engine, module, name, info)
    return tuple(found)


def functions_of(module: SourceModule) -> Iterator[tuple[str, FunctionInfo]]:
    """A file's functions and methods, a method as ``Class.method``."""
    yield from module.index.functions.items()
    for cls in module.index.classes.values():
        for info in cls.methods.values():
            yield f"{cls.name}.{info.name}", info


def _reader(engine: Engine, module: SourceModule, name: str, info: FunctionInfo) -> Iterator[Reader]:
    try:
        piece = module.slice(info.line, info.end_line)
    except SyntaxError:
        return
    reads = tuple(_reads(piece))
    if reads:
        swallowed = tuple(_swallowed(piece, reads))
        yield Reader(name, place_of_definition(module, info), reads, swallowed, decides=name in engine.resolvers)


def _reads(piece: Slice) -> Iterator[KeyRead]:
    sections = _sections(piece)
    for node in walk(piece.body[0]):
        holder, key = _read(node)
        if holder is None or key not in _KEYS:
            continue
        below = _KEYS[key]
        inside = _section_of(holder, sections)
        for section in sorted(inside) or ("",):
            if below is None or section in below:
                yield KeyRead((section, key) if section else (key,), place_of_node(piece, node))


def _read(node: cst.CSTNode) -> tuple[cst.CSTNode | None, str]:
    """What is read from and the key: ``x["key"]``, ``x.get("key")``, ``getattr(x, "key")``, ``helper(x, "key")``."""
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return node.value, str(key.evaluated_value)
        case cst.Call(args=[first, cst.Arg(value=cst.SimpleString() as key), *_]) if not isinstance(
            first.value, cst.SimpleString
        ):
            return first.value, str(key.evaluated_value)
        case cst.Call(args=[cst.Arg(value=cst.SimpleString() as key), *_]):
            return node.func, str(key.evaluated_value)
    return None, ""


def _sections(piece: Slice) -> dict[str, set[str]]:
    """The names that hold a section of the config, with the sections that they may hold."""
    known: dict[str, set[str]] = {}
    while True:
        before = sum(map(len, known.values()))
        for node in walk(piece.body[0]):
            match node:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    known.setdefault(name, set()).update(_section_of(value, known))
                case cst.For(target=cst.Name(value=name), iter=value):
                    known.setdefault(name, set()).update(_section_of(value, known))
        if sum(map(len, known.values())) == before:
            return known


def _section_of(node: cst.CSTNode, known: dict[str, set[str]]) -> set[str]:
    """The sections that an expression names; one that reads a key out of a section is none itself."""
    found: set[str] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if _read(current)[1] in _KEYS:
            continue
        match current:
            case cst.SimpleString() if current.evaluated_value in _SECTIONS:
                found.add(str(current.evaluated_value))
            case cst.Attribute(attr=cst.Name(value=name)) if name in _SECTIONS:
                found.add(name)
            case cst.Name(value=name):
                found |= known.get(name, set())
        pending += children(current)
    return found


def _swallowed(piece: Slice, reads: tuple[KeyRead, ...]) -> Iterator[tuple[Place, Place]]:
    """Broad ``except`` clauses that go on where a read failed, each with the read."""
    for node in walk(piece.body[0]):
        if not isinstance(node, cst.Try):
            continue
        inside = [read.place for read in reads if _holds(piece, node.body, read.place)]
        for handler in node.handlers:
            if inside and _is_broad(handler) and not any(isinstance(inner, cst.Raise) for inner in walk(handler.body)):
                yield place_of_node(piece, handler), inside[-1]


def _holds(piece: Slice, block: cst.CSTNode, place: Place) -> bool:
    lines = [piece.position(node)[0] for node in walk(block) if isinstance(node, cst.BaseSmallStatement)]
    return bool(lines) and min(lines) <= place.span.start.line <= _last_line(piece, block)


def _last_line(piece: Slice, block: cst.CSTNode) -> int:
    ends = [end[0] for node in walk(block) if (end := piece.end(node)) is not None]
    return max(ends, default=0)


def _is_broad(handler: cst.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    named = {node.value for node in walk(handler.type) if isinstance(node, cst.Name)}
    return bool(named & {"Exception", "BaseException"})
