"""What a norm in training code multiplies with: its weight as it is, or one more than that."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from eaglelint.practice import Gain
from eaglelint.source.tree import SourceModule
from eaglelint.source.values import ClassValue
from eaglelint.survey.facts import Place
from eaglelint.survey.places import place_of_definition

__all__ = ["adds_one", "gain_of"]


def gain_of(cls: ClassValue | None) -> tuple[Gain | None, Place | None]:
    """The gain of a norm's class and where it is defined.

    The gain is None where nothing is multiplied with a weight, or the class is not among the sources.
    """
    if cls is None:
        return None, None
    module, info = cls.module, cls.info
    reader = _Products()
    for method in info.methods.values():
        if method.name != "__init__":
            try:
                piece = module.slice(method.line, method.end_line)
            except SyntaxError:
                return None, None
            for statement in piece.body:
                statement.visit(reader)
    gain: Gain | None = "1+w" if reader.one_more else "w" if reader.plain else None
    return gain, place_of_definition(module, info)


def adds_one(modules: Iterable[SourceModule]) -> bool:
    """Whether one is added to a weight anywhere outside of the methods of norms: when it is loaded, say."""
    for module in modules:
        norms = [info for info in module.index.classes.values() if "norm" in info.name.lower()]
        methods = [m for info in norms for m in info.methods.values() if m.name != "__init__"]
        inside = {line for method in methods for line in range(method.line, method.end_line + 1)}
        lines = (line for number, line in enumerate(module.lines, 1) if number not in inside)
        if any(_adds_one(line) for line in lines if "weight" in line and ("+" in line or "add" in line)):
            return True
    return False


def _adds_one(line: str) -> bool:
    """Whether a line of code adds one to something called a weight."""
    try:
        statement = cst.parse_statement(line.strip())
    except cst.ParserSyntaxError:
        return False
    reader = _Sums()
    statement.visit(reader)
    return reader.found


class _Products(cst.CSTVisitor):
    """Products with a weight, and whether one was added to it first."""

    def __init__(self) -> None:
        self.plain = self.one_more = False

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if isinstance(node.operator, cst.Multiply):
            for side in (node.left, node.right):
                self.one_more = self.one_more or _one_and_weight(side)
                self.plain = self.plain or _is_weight(side)

    def visit_Call(self, node: cst.Call) -> None:
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        weights = [arg.value for arg in node.args]
        if name in ("rms_norm", "mul", "mul_"):
            self.one_more = self.one_more or any(map(_one_and_weight, weights))
            self.plain = self.plain or any(map(_is_weight, weights))


class _Sums(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found = False

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        self.found = self.found or _one_and_weight(node)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        adds = isinstance(node.operator, cst.AddAssign) and _is_one(node.value)
        self.found = self.found or (adds and _is_weight(node.target))

    def visit_Call(self, node: cst.Call) -> None:
        adds = isinstance(node.func, cst.Attribute) and node.func.attr.value in ("add", "add_")
        if adds and isinstance(node.func, cst.Attribute) and node.args and _is_one(node.args[0].value):
            self.found = self.found or _is_weight(node.func.value)


def _one_and_weight(node: cst.CSTNode) -> bool:
    """``1 + weight``, whatever types it is turned into on the way."""
    node = _inner(node)
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return False
    sides = (node.left, node.right)
    return any(map(_is_one, sides)) and any(map(_is_weight, sides))


def _is_one(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Integer | cst.Float) and float(node.value.replace("_", "")) == 1.0


def _is_weight(node: cst.CSTNode) -> bool:
    node = _inner(node)
    if isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Index):
        index = node.slice[0].slice.value
        return isinstance(index, cst.SimpleString) and "weight" in index.value
    name = node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
    return "weight" in name or name in ("w", "gain", "scale", "norm")


def _inner(node: cst.CSTNode) -> cst.CSTNode:
    """What methods of a tensor, ``weight.float()``, and items, ``weights["norm.weight"]``, stand on."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in ("get_tensor", "pop", "get"):
            break
        node = node.func.value
    return node
