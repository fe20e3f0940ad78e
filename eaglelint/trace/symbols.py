"""What is asked for: a name, ``Class.attribute``, ``file.py:function:name`` or a config key; and where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eaglelint.exceptions import WrongUsage
from eaglelint.trace.graph import Node
from eaglelint.trace.links import Links
from eaglelint.trace.project import Class

__all__ = ["Symbol", "parse_symbol", "seeds_of"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name, and what narrows it down."""

    name: str
    cls: str | None = None
    file: str | None = None
    function: str | None = None

    def covers(self, node: Node) -> bool:
        """Whether a node lies in the file and function that were named."""
        display = node.scope.outline.display
        if self.file is not None and display != self.file and not display.endswith("/" + self.file.removeprefix("./")):
            return False
        if self.function is not None:
            function = node.scope.function or ""
            return function == self.function or function.endswith(f".{self.function}")
        return True


def parse_symbol(text: str) -> Symbol:
    """Take a symbol apart.

    Raises:
        WrongUsage: It is not written as one.
    """
    wanted = text.strip().strip("\"'")
    if ":" in wanted:
        parts = wanted.rsplit(":", 2)
        if len(parts) == 2 and parts[0].endswith(".py"):
            parts = [parts[0], "", parts[1]]
        if len(parts) == 3 and parts[2].isidentifier():
            return Symbol(parts[2], file=parts[0] or None, function=parts[1] or None)
    elif re.fullmatch(r"\w+", wanted) and wanted.isidentifier():
        return Symbol(wanted)
    else:
        owner, dot, name = wanted.rpartition(".")
        if dot and name.isidentifier() and all(part.isidentifier() for part in owner.split(".")):
            return Symbol(name, cls=owner.rpartition(".")[2])
    raise WrongUsage(
        f"{text} is no symbol: write a name, Class.attribute, file.py:function:name or the key of a config."
    )


def seeds_of(links: Links, symbol: Symbol) -> tuple[list[Node], list[str]]:
    """All places of a symbol, and what is to be said about them."""
    found = links.project.lines_with(symbol.name)
    for outline, lines in found.items():
        for line in lines:
            if links.scope_at(outline, line) is None and outline.display in links.project.skipped:
                break
    nodes = [
        node
        for node in links.graph.nodes
        if node.name == symbol.name and symbol.covers(node) and links.project.includes(node.scope.outline)
    ]
    if symbol.cls is None:
        return nodes, []
    return _of_class(links, symbol, nodes)


def _of_class(links: Links, symbol: Symbol, nodes: list[Node]) -> tuple[list[Node], list[str]]:
    classes = links.project.classes_named(symbol.cls or "")
    if not classes:
        raise WrongUsage(f"There is no class {symbol.cls} in the files. Check the name and the paths.")
    family: dict[Class, None] = {}
    for cls in classes:
        family.update(dict.fromkeys((*links.project.mro(cls), *links.project.subclasses(cls))))
    kept: list[Node] = []
    unknown: list[Node] = []
    for node in links.attribute_nodes(symbol.name):
        owners = links.classes(node)
        if any(owner in family for owner in owners):
            kept.append(node)
        elif not owners:
            unknown.append(node)
    notes = []
    if unknown:
        places = ", ".join(f"{node.scope.outline.display}:{node.line}" for node in unknown[:3])
        more = " and others" if len(unknown) > 3 else ""
        notes.append(
            f"{len(unknown)} more of that name are on objects whose class is not known ({places}{more}); "
            f"trace {symbol.name} shows them all."
        )
    return kept, notes
