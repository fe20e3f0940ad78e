"""Building a model with parts missing: a statement of an ``__init__`` that fails is passed over, and reported.

What such a statement would have set is a stand-in afterwards. So an encoder of images that cannot be built, or a check
of a config's value, does not stand in the way of the decoder layers.
"""

from __future__ import annotations

import ast
import functools
import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from eaglelint.probe.wiring.facts import value_fact
from eaglelint.probe.wiring.standin import StandIn

__all__ = ["PASSED_OVER", "forgiving", "install_building", "passing_over", "register_operator"]

PASSED_OVER = "__passed_over__"
_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "arange", "tensor", "linspace", "eye")


def forgiving(cls: ast.ClassDef) -> None:
    """Rewrite the ``__init__`` of a class, in place, so that each of its statements may fail."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and node.args.args:
            node.body = _forgiving_body(node.body, node.args.args[0].arg, cls.name)
            ast.fix_missing_locations(node)


def _forgiving_body(body: list[ast.stmt], owner: str, cls: str) -> list[ast.stmt]:
    changed: list[ast.stmt] = []
    for statement in body:
        for part in ("body", "orelse", "finalbody"):
            inner = getattr(statement, part, None)
            if inner and isinstance(statement, ast.If | ast.With | ast.For | ast.While):
                setattr(statement, part, _forgiving_body(inner, owner, cls))
        if isinstance(statement, ast.Return | ast.Pass | ast.Break | ast.Continue | ast.Global | ast.Nonlocal):
            changed.append(statement)
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            changed.append(_tried(statement, owner, cls))
        else:
            changed.append(statement)
    return changed


def _tried(statement: ast.stmt, owner: str, cls: str) -> ast.stmt:
    called = ast.parse(f"{PASSED_OVER}({owner}, {cls!r}, {statement.lineno}, the_error)").body
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for name in sorted(names - {owner}):
        called += ast.parse(f"try: {name}\nexcept NameError: {name} = {PASSED_OVER}.stand_in({name!r})").body
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "the_error", called)
    tried = ast.Try([statement], [handler], [], [])
    for node in ast.walk(tried):
        if "lineno" in getattr(node, "_attributes", ()) and not hasattr(node, "lineno"):
            ast.copy_location(node, statement)
    return tried


class passing_over:
    """What a rewritten ``__init__`` calls when one of its statements has failed."""

    def __init__(self, note: Callable[[str, BaseException], None]) -> None:
        self.note = note

    def __call__(self, owner: Any, cls: str, line: int, error: BaseException) -> None:
        if isinstance(owner, nn.Module):
            if "_modules" not in owner.__dict__:
                nn.Module.__init__(owner)
            object.__setattr__(owner, "unfinished_part", True)
        self.note(f"{cls}.__init__, line {line}", error)

    @staticmethod
    def stand_in(name: str) -> Any:
        return StandIn(name)


def install_building() -> None:
    """Gaps in parts are stand-ins; a size that is not known is 1; operators of kernels and log levels are stand-ins."""
    missing = nn.Module.__getattr__

    def getattr_(module: Any, name: str) -> Any:
        try:
            return missing(module, name)
        except AttributeError:
            if "unfinished_part" not in module.__dict__ or (name.startswith("__") and name.endswith("__")):
                raise
        known = value_fact(name)
        value = StandIn(f"{type(module).__name__}.{name}") if known is NotImplemented else known
        object.__setattr__(module, name, value)
        return value

    nn.Module.__getattr__ = getattr_
    for factory in _FACTORIES:
        setattr(torch, factory, _with_sizes(getattr(torch, factory)))
    operators = type(torch.ops.aten)
    known_operator = operators.__getattr__

    def operator(namespace: Any, name: str) -> Any:
        try:
            return known_operator(namespace, name)
        except AttributeError:
            if name.startswith("__") and name.endswith("__"):
                raise
            return OPERATORS.get(name) or StandIn(f"torch.ops.{namespace.name}.{name}")

    operators.__getattr__ = operator
    logging.Logger.__getattr__ = lambda self, name: _log(name)  # type: ignore[attr-defined]
    logging.disable(logging.CRITICAL)


def _log(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **kwargs: None


OPERATORS: dict[str, Any] = {}
"""Operators that the scanned code registers with an implementation in Python, by name."""


def register_operator(op_name: str, op_func: Any, *args: Any, **kwargs: Any) -> None:
    """In the place of ``direct_register_custom_op`` of SGLang and vLLM: the operator is its implementation."""
    OPERATORS[op_name] = op_func


def _with_sizes(factory: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(factory)
    def make(*args: Any, **kwargs: Any) -> Any:
        known = {key: value for key, value in kwargs.items() if not isinstance(value, StandIn)}
        return factory(*map(_size, args), **known)

    return make


def _size(value: Any) -> Any:
    if isinstance(value, StandIn):
        return 1
    if type(value) in (tuple, list):
        return type(value)(map(_size, value))
    return value
