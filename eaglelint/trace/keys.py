"""Strings in calls that name a key of a config or an attribute: ``getattr(config, "ids", None)``, ``d.get("ids")``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eaglelint.trace.places import Places

__all__ = ["container", "fallback", "key_argument"]

_KEY_FUNCTIONS = frozenset(["getattr", "hasattr", "setattr", "delattr"])
_KEY_METHODS = frozenset(["get", "pop", "setdefault", "has", "getattr"])


def key_argument(walker: Places, node: ast.Call, name: str) -> ast.Constant | None:
    """The string in a call that names an attribute or a key."""
    position = 1 if name in _KEY_FUNCTIONS and isinstance(node.func, ast.Name) else 0
    keyed = (position == 1 or (name in _KEY_METHODS and isinstance(node.func, ast.Attribute))) and len(
        node.args
    ) > position
    if not keyed:
        return None
    argument = node.args[position]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        key = walker.key(argument, "config-key", container=container(node), fallback=fallback(node, name))
        if key is not None:
            key.names_attribute = position == 1
        return argument
    return None


def container(node: ast.Call) -> ast.expr | None:
    if isinstance(node.func, ast.Attribute):
        return node.func.value
    return node.args[0] if node.args else None


def fallback(node: ast.Call, name: str) -> str | None:
    if name == "getattr" and len(node.args) > 2:
        return ast.unparse(node.args[2])
    if name == "get" and isinstance(node.func, ast.Attribute):
        return ast.unparse(node.args[1]) if len(node.args) > 1 else "None"
    return None
