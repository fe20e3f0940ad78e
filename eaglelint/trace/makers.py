"""Under which names the objects of a class are kept: what is assigned from its constructor, or from what makes one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eaglelint.source.outline import Outline
from eaglelint.trace.project import Class, Project

__all__ = ["instance_names", "loaded_attributes"]

_MODULE = r"->\s*(?:torch\.)?nn\.Module\s*:"
_KEPT = re.compile(rb"self\.(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*(?:\w+[ \t]+or[ \t]+)?(?:[\w.]+\.)?(\w+)\(")


def instance_names(project: Project, cls: Class) -> set[str]:
    """Names that are assigned from ``cls(...)``, or from what returns it: ``self.model = self._init_model(...)``."""
    names: set[str] = set()
    kept, returned = _assigned(cls.name), re.compile(rf"return\s+(?:[\w.]+\.)?{re.escape(cls.name)}\(")
    for outline, line in _lines(project, f"{cls.name}(", _called(cls.name)):
        text = outline.lines[line - 1]
        names.update(kept.findall(text))
        block = outline.innermost(line) if returned.search(text) else None
        if block is not None and block.kind == "def":
            maker = _assigned(block.name)
            for other, at in _lines(project, f"{block.name}(", _called(block.name)):
                names.update(maker.findall(other.lines[at - 1]))
    return names


def loaded_attributes(project: Project) -> dict[Outline, set[str]]:
    """Attributes that hold a module of a class that only a registry knows: ``self.model = loader.load_model(...)``.

    They are those that are assigned from a function that is declared to return some ``nn.Module``, by file.
    """
    makers: set[str] = set()
    for outline, line in _lines(project, "Module", _MODULE):
        block = outline.innermost(line)
        if block is not None and block.kind == "def":
            makers.add(block.name)
    found: dict[Outline, set[str]] = {}
    project.searched += project.size
    for file, source in project.sources.items():
        names = {name.decode() for name, maker in _KEPT.findall(source) if maker.decode() in makers}
        kept_in = project.outline(file) if names else None
        if kept_in is not None:
            found[kept_in] = names
    return found


def _called(maker: str) -> str:
    return rf"(?<!\w){re.escape(maker)}\("


def _assigned(maker: str) -> re.Pattern[str]:
    return re.compile(rf"(\w+)\s*(?::[^=\n]+)?=\s*(?:[\w.]+\.)?{re.escape(maker)}\(")


def _lines(project: Project, word: str, pattern: str) -> Iterator[tuple[Outline, int]]:
    for outline, lines in project.lines_with(word, pattern).items():
        for line in lines:
            yield outline, line
