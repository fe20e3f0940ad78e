"""Which classes may have a method, their own or an inherited one: a test on text, so that few files are indexed."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eaglelint.engines.base import EngineSource

__all__ = ["MAKES", "Heirs", "heirs"]

MAKES = re.compile(rb"self\.\w+\s*(?::[^=\n]+)?=\s*\(?\s*([A-Z]\w+)\(")
"""``self.SOMETHING`` becomes an object of some class."""

# Each begins with a literal, so that it is found at the speed of C.
_CLASS = re.compile(r"class[ \t]+(\w+)[ \t]*(?:\(([^()]*)\))?[ \t]*:")
_FROM = re.compile(r"from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^()]*)\)|([^\n(]*))")
_IMPORTED = re.compile(r"(\w+)(?:\s+as\s+(\w+))?")
_BASE = re.compile(r"\s*([\w.]+)\s*(?:\[|$)")


@dataclass(frozen=True, slots=True)
class Heirs:
    """Classes of some directory.

    Attributes:
        names: Those of files that speak of something, and those below them.
        classes: All whose bases could be read.
        files: Those of the first that each file defines.
        renamed: What names of imports stand for, where it is another name.
    """

    names: frozenset[str]
    classes: frozenset[str]
    files: Mapping[Path, frozenset[str]]
    renamed: frozenset[tuple[str, str]]

    def may_include(self, name: str) -> bool:
        return name in self.names or name not in self.classes

    def also_called(self, names: Iterable[str]) -> frozenset[str]:
        """These names, and those as which they are imported."""
        found = set(names)
        return frozenset(found.union(alias for alias, name in self.renamed if name in found))


@dataclass(frozen=True, slots=True)
class _File:
    """The bases of each class, and what else names of imports stand for; None for a base of the unread package."""

    bases: dict[str, tuple[str | None, ...]]
    renamed: dict[str, str]


def heirs(source: EngineSource, directory: Path, speaks: Callable[[bytes], object]) -> Heirs:
    """The classes below a directory that are in a file that speaks of it, or inherit from one.

    A base that comes from elsewhere in the engine's package may be one as well.
    """
    files = {path: _read(source, directory, path) for path in source.tree.files(directory)}
    classes = frozenset(name for file in files.values() for name in file.bases)
    names = {name for path, file in files.items() if speaks(source.tree.read(path)) for name in file.bases}
    while True:
        more = {
            name
            for file in files.values()
            for name, bases in file.bases.items()
            if name not in names and any(base is None or base in names or base not in classes for base in bases)
        }
        if not more:
            break
        names |= more
    return Heirs(
        frozenset(names),
        classes,
        {path: frozenset(found) for path, file in files.items() if (found := names.intersection(file.bases))},
        frozenset(pair for file in files.values() for pair in file.renamed.items()),
    )


def _read(source: EngineSource, directory: Path, path: Path) -> _File:
    return source.tree.once(("bases", directory, path), lambda: _bases(source, directory, path))


def _bases(source: EngineSource, directory: Path, path: Path) -> _File:
    text = source.tree.read(path).decode("utf-8", "replace")
    package = source.package.name
    own = ".".join((package, *directory.relative_to(source.package).parts))
    outside: set[str] = set()  # names from other packages
    unread: set[str] = set()  # from another directory of this one
    renamed: dict[str, str] = {}
    for module, listed, line in _FROM.findall(text):
        inside = module.partition(".")[0] in ("", package)
        for name, alias in _IMPORTED.findall(listed or line):
            if not inside:
                outside.add(alias or name)
            elif module[0] == "." or f"{module}.".startswith(f"{own}."):
                renamed |= {alias: name} if alias else {}
            else:
                unread.add(alias or name)

    def told(bases: str) -> Iterator[str | None]:
        for written in bases.split(","):
            found = _BASE.match(written)
            if found is None:  # ``metaclass=...`` is no base
                yield from () if "=" in written or not written.strip() else (None,)
                continue
            first, _, rest = found[1].partition(".")
            if rest and first not in outside | unread and _is_imported(text, first, package):
                outside.add(first)
            if first in unread:
                yield None
            elif first not in outside and not hasattr(builtins, first):
                last = found[1].rpartition(".")[2]
                yield renamed.get(last, last)

    return _File({name: tuple(told(bases)) for name, bases in _CLASS.findall(text)}, renamed)


def _is_imported(text: str, name: str, package: str) -> bool:
    """Whether a statement without ``from`` imports a module of another package under that name."""
    found = re.search(rf"^[ \t]*import[ \t]+(?!{package}\b)(?:[\w.]+[ \t]+as[ \t]+)?{name}\b", text, re.M)
    return found is not None
