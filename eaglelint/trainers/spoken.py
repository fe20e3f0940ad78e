"""The names of tensors that a converter's code speaks of: what it tests, and what it looks up."""

from __future__ import annotations

import libcst as cst

from eaglelint.source.values import ClassValue
from eaglelint.source.walk import walk

__all__ = ["spoken_names"]


def spoken_names(cls: ClassValue) -> tuple[str, ...]:
    """A name for each text that the methods of a class hold against a key; ``*`` stands where the text leaves it open.

    ``key.startswith("midlayer.")`` speaks of ``midlayer.*``, ``"qkv_proj" in key`` of ``*.qkv_proj.*``.
    """
    found: dict[str, None] = {}
    for info in cls.info.methods.values():
        try:
            piece = cls.module.slice(info.line, info.end_line)
        except SyntaxError:
            continue
        nodes = [inner for node in piece.body for inner in walk(node)]
        loops = [node.target for node in nodes if isinstance(node, cst.For | cst.CompFor)]
        finder = _Spoken({name for target in loops for name in _names(target)})
        for statement in piece.body:
            statement.visit(finder)
        found |= dict.fromkeys(finder.found)
    return tuple(found)


class _Spoken(cst.CSTVisitor):
    def __init__(self, drawn: set[str]) -> None:
        self.drawn = drawn  # the variables of loops, and what is made of them: keys
        self.found: list[str] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        if _names(node.value) & self.drawn:
            targets = (target.target for target in node.targets)
            self.drawn |= {target.value for target in targets if isinstance(target, cst.Name)}

    def visit_Comparison(self, node: cst.Comparison) -> None:
        for target in node.comparisons:
            if isinstance(target.operator, cst.In | cst.NotIn):
                of_key = isinstance(target.comparator, cst.Name) and target.comparator.value in self.drawn
                self._inside(_text(node.left)) if of_key else self._whole(_text(node.left))
                if isinstance(target.comparator, cst.Tuple | cst.List | cst.Set):
                    texts = [_text(element.value) for element in target.comparator.elements]
                    self.found += [text for text in texts if text]
            elif isinstance(target.operator, cst.Equal):
                self._whole(_text(target.comparator))

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.args:
            text = _text(node.args[0].value)
            if text and node.func.attr.value == "startswith":
                self.found.append(text.rstrip(".") + ".*")
            elif text and node.func.attr.value == "endswith":
                self.found.append("*." + text.lstrip("."))

    def _inside(self, text: str) -> None:
        if text:
            self.found.append(f"*.{text.strip('.')}.*")

    def _whole(self, text: str) -> None:
        if text:
            self.found.append(text)


def _names(node: cst.CSTNode) -> set[str]:
    return {inner.value for inner in walk(node) if isinstance(inner, cst.Name)}


def _text(node: cst.BaseExpression) -> str:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    return value if isinstance(value, str) else ""
