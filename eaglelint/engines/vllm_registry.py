"""vLLM's registry: which class an architecture stands for, by the tables of models/registry.py (0.33.0)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from eaglelint.engines.base import EngineSource, mentioned_names
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import class_mro, global_value
from eaglelint.source.machine import Machine
from eaglelint.source.tree import Binding
from eaglelint.source.values import ClassValue

__all__ = ["draft_class", "is_draft", "module_rows", "registered", "target_class", "target_classes"]

_INTERFACE = "SupportsEagle3"
_TABLE = re.compile(r"_[A-Z_]+_MODELS")
_DRAFTS = "SPECULATIVE"  # in the name of the table of draft models
_CLASS = re.compile(rb"^class\s+(\w+)\s*\(([^)]*)\)", re.M)


def target_class(source: EngineSource, name: str) -> Binding | None:
    """The class that the registry maps the architecture of a target to, else the class of that name."""
    return _class_of(source, name, drafts=False)


def draft_class(source: EngineSource, name: str) -> Binding | None:
    """The same for a draft, which has a table of its own."""
    return _class_of(source, name, drafts=True)


def registered(source: EngineSource) -> tuple[frozenset[str], tuple[str, ...]]:
    """Every architecture that the registry knows, and those of drafts.

    Names that the reading of a speculative config mentions may be changed before the registry is asked, and count.
    """
    drafts = tuple(sorted(_rows(source, drafts=True)))
    changed = mentioned_names(source, source.package / "config" / "speculative.py")
    return changed.union(drafts, _rows(source, drafts=False)), drafts


def is_draft(source: EngineSource, name: str) -> bool:
    """Whether the registry has a draft under exactly this name."""
    return name in _rows(source, drafts=True)


def _class_of(source: EngineSource, name: str, *, drafts: bool) -> Binding | None:
    row = _rows(source, drafts=drafts).get(name)
    found = _class_at(Machine(source.tree), source, *row) if row is not None else None
    return found or source.tree.find_class(name, _directories(source))


def target_classes(source: EngineSource) -> list[Binding]:
    """The registered classes that inherit the interface; without a registry, all that do."""
    machine = Machine(source.tree)
    directories = _directories(source)
    names = _subclasses(source, directories, _INTERFACE)
    rows = _rows(source, drafts=False)
    candidates = [_class_at(machine, source, *row) for row in rows.values() if row[1] in names]
    if not rows:
        candidates = [source.tree.find_class(name, directories) for name in sorted(names)]
    found: dict[tuple[str, str], Binding] = {}
    for binding in candidates:
        if binding is not None and isinstance(binding.item, ClassInfo):
            mro = class_mro(machine, ClassValue(binding.module, binding.item))
            if any(isinstance(entry, ClassValue) and entry.info.name == _INTERFACE for entry in mro[1:]):
                found[binding.module.name, binding.item.name] = binding
    return [found[key] for key in sorted(found)]


def _directories(source: EngineSource) -> tuple[Path, ...]:
    found = (source.package / "model_executor" / "models", source.package / "models")
    return tuple(directory for directory in found if source.tree.is_dir(directory))


def _rows(source: EngineSource, *, drafts: bool) -> dict[str, tuple[str, str]]:
    """The module and class of targets, or of drafts, by their architecture's name."""
    return source.tree.once(("rows", source.package, drafts), lambda: _read_rows(source, drafts=drafts))


def _read_rows(source: EngineSource, *, drafts: bool) -> dict[str, tuple[str, str]]:
    path = source.package / "model_executor" / "models" / "registry.py"
    module = source.tree.module_at(path) if source.tree.is_file(path) else None
    if module is None:
        return {}
    machine = Machine(source.tree)
    values = {name: global_value(machine, module, name) for name in module.index.assignments if _TABLE.fullmatch(name)}
    tables = {name: table for name, table in values.items() if isinstance(table, dict)}
    of_drafts = {name: row for table, rows in tables.items() if _DRAFTS in table for name, row in rows.items()}
    all_rows = {name: row for table in tables.values() for name, row in table.items()}
    rows = of_drafts if drafts else {name: row for name, row in all_rows.items() if name not in of_drafts}
    return {name: row for name, row in rows.items() if isinstance(row, tuple) and len(row) == 2}


def module_rows(source: EngineSource) -> dict[str, tuple[str, str]]:
    """The module, by its full name, and the class of each target, by its architecture's name."""
    rows = _rows(source, drafts=False)
    return {name: (_full_name(source, module), cls) for name, (module, cls) in rows.items()}


def _full_name(source: EngineSource, module: str) -> str:
    package = source.package.name
    return module if module.startswith(f"{package}.") else f"{package}.model_executor.models.{module}"


def _class_at(machine: Machine, source: EngineSource, module_name: str, name: str) -> Binding | None:
    """The class in a module that is named in full, or as one of the directory that holds the models."""
    module = source.tree.module(_full_name(source, module_name))
    found = global_value(machine, module, name) if module is not None else None
    return Binding(found.module, found.info) if isinstance(found, ClassValue) else None


def _subclasses(source: EngineSource, directories: Iterable[Path], name: str) -> set[str]:
    """The names of classes below a class of that name, by a test on the files' text."""
    bases: dict[str, set[str]] = {}
    for directory in directories:
        for path in source.tree.files(directory):
            for cls, written in _CLASS.findall(source.tree.read(path)):
                bases.setdefault(cls.decode(), set()).update(re.findall(r"\w+", written.decode("utf-8", "replace")))
    found = {name}
    while True:
        more = {cls for cls, above in bases.items() if above & found} - found
        if not more:
            return found - {name}
        found |= more
