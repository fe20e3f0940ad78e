"""The statements of a function that lead to one attribute: a backward slice by names, over-approximated."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst

from eaglelint.source.walk import children

__all__ = ["Effects", "assigns_attribute", "prune"]


_MUTATING = frozenset(["add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"])


_REGISTERING = frozenset(["register_buffer", "register_parameter", "register_module", "add_module"])


@dataclass(slots=True)
class Effects:
    """What a statement may change, and what it reads. ``calls`` are its calls of methods on a plain name.

    ``yields``: in a context manager, it runs what stands inside the ``with``.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)
    calls: list[cst.Call] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    yields: bool = False


@dataclass(frozen=True, slots=True)
class _Wanted:
    receiver: str
    name: str
    sets_it: Callable[[cst.Call], bool]
    effects: dict[cst.CSTNode, Effects]


# self.NAME = ..., self.NAME: T = ..., self.NAME[0] += ..., self.NAME.append(...); not f"{self.NAME=}".
_ASSIGNED = re.compile(
    r"\b\w+\.(\w+)\b(?=(?:\[[^\]\n]*\])?\s*(?::[^=\n]+|[-+*/|&%@^<>]{0,3})=(?![=}!:])|\.(?:"
    + "|".join(sorted(_MUTATING))
    + r")\()"
)
# self.a, self.NAME = ... at the start of a statement, and (self.a, self.NAME) = ..., over lines or not. What is handed
# to a call, f(self.a, b=1), is no target.
_TARGETS = re.compile(
    r"(?:^|[:;])[ \t]*((?:\*?[\w.]+(?:\[[^\]\n]*\])?[ \t]*,[ \t]*)+(?:\*?[\w.]+(?:\[[^\]\n]*\])?)?)[ \t]*=(?!=)"
    r"|[(\[]([^()=]*,[^()=]*)[)\]]\s*=(?!=)",
    re.MULTILINE,
)
_TARGET = re.compile(r"\b\w+\.(\w+)\b")


def assigns_attribute(text: str, name: str) -> bool:
    """A quick test on a method's text: may it set ``self.NAME``?"""
    return name in _assigned_attributes(text)


@lru_cache(maxsize=4096)
def _assigned_attributes(text: str) -> frozenset[str]:
    lists = (match.group(1) or match.group(2) for match in _TARGETS.finditer(text))
    return frozenset((*_ASSIGNED.findall(text), *(name for targets in lists for name in _TARGET.findall(targets))))


def prune(
    body: Sequence[cst.BaseStatement],
    receiver: str,
    name: str,
    sets_it: Callable[[cst.Call], bool],
    effects: dict[cst.CSTNode, Effects],
) -> list[cst.BaseStatement]:
    """The statements of ``body`` that may contribute to ``receiver.name``, compound statements thinned out.

    Args:
        body: The statements of an ``__init__``.
        receiver: The name of its first parameter.
        name: The attribute asked for.
        sets_it: Whether a call, ``super().__init__(...)`` or ``self.method(...)``, sets the attribute elsewhere.
        effects: What each statement of this function changes and reads; filled on first use.
    """
    wanted = _Wanted(receiver, name, sets_it, effects)
    needed: set[str] = set()
    while True:
        before = len(needed)
        kept = _keep(body, wanted, needed)
        if len(needed) == before:
            return kept


def _keep(body: Sequence[cst.BaseStatement], wanted: _Wanted, needed: set[str]) -> list[cst.BaseStatement]:
    kept: list[cst.BaseStatement] = []
    for statement in reversed(body):
        thinned = _thin(statement, wanted, needed)
        if thinned is not None:
            kept.append(thinned)
    kept.reverse()
    return kept


def _thin(statement: cst.BaseStatement, wanted: _Wanted, needed: set[str]) -> cst.BaseStatement | None:
    if not _contributes(_effects(statement, wanted), wanted, needed):
        return None
    if isinstance(statement, cst.If):
        return _thin_if(statement, wanted, needed)
    if (
        isinstance(statement, cst.With)
        and isinstance(statement.body, cst.IndentedBlock)
        and not _sets_around(statement, wanted)
    ):
        inner = _keep(statement.body.body, wanted, needed)
        for item in statement.items:
            needed |= _effects(item, wanted).reads
        return statement.with_changes(body=statement.body.with_changes(body=inner))
    # Loops and try blocks are kept whole: what they leave out would change what they mean.
    needed |= _effects(statement, wanted).reads
    return statement


def _sets_around(statement: cst.With, wanted: _Wanted) -> bool:
    """Whether a context sets the attribute, and so may see whatever its body does."""
    return any(wanted.sets_it(call) for item in statement.items for call in _effects(item, wanted).calls)


def _thin_if(statement: cst.If, wanted: _Wanted, needed: set[str]) -> cst.If | None:
    body: cst.BaseSuite = statement.body
    orelse: cst.If | cst.Else | None = statement.orelse
    useful = False
    if isinstance(body, cst.IndentedBlock):
        inner = _keep(body.body, wanted, needed)
        useful = bool(inner)
        body = body.with_changes(body=inner)
    if isinstance(orelse, cst.If):
        orelse = _thin_if(orelse, wanted, needed)
        useful = useful or orelse is not None
    elif isinstance(orelse, cst.Else) and isinstance(orelse.body, cst.IndentedBlock):
        inner = _keep(orelse.body.body, wanted, needed)
        useful = useful or bool(inner)
        orelse = orelse.with_changes(body=orelse.body.with_changes(body=inner))
    if not useful:
        return None
    needed |= _effects(statement.test, wanted).reads
    return statement.with_changes(body=body, orelse=orelse)


def _contributes(effects: Effects, wanted: _Wanted, needed: set[str]) -> bool:
    if effects.yields or effects.names & needed or (wanted.receiver, wanted.name) in effects.attributes:
        return True
    for call in effects.calls:
        if wanted.sets_it(call):
            return True
        # names.append(...), self.layers.append(...): a method may change what a kept name, or the attribute, holds
        if not (isinstance(call.func, cst.Attribute) and call.func.attr.value in _MUTATING):
            continue
        match call.func.value:
            case cst.Name(value=target) if target in needed and target != wanted.receiver:
                return True
            case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=target)):
                if (owner, target) == (wanted.receiver, wanted.name):
                    return True
    return False


def _effects(node: cst.CSTNode, wanted: _Wanted) -> Effects:
    found = wanted.effects.get(node)
    if found is None:
        found = wanted.effects[node] = Effects()
        _collect(node, found, wanted)
    return found


def _collect(node: cst.CSTNode, effects: Effects, wanted: _Wanted) -> None:
    """Add the effects of a node and of all inside it; those of inner statements are kept for themselves."""
    match node:
        case cst.Name():
            effects.reads.add(node.value)
            return
        case cst.Attribute():
            _collect(node.value, effects, wanted)  # not the attribute's own name
            return
        case cst.Arg():
            _collect(node.value, effects, wanted)  # not the keyword
            return
        case cst.ImportAlias():
            bound: cst.CSTNode = node.asname.name if node.asname is not None else node.name
            while isinstance(bound, cst.Attribute):
                bound = bound.value
            if isinstance(bound, cst.Name):
                effects.names.add(bound.value)
            return
        case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For() | cst.NamedExpr() | cst.CompFor():
            _target(node.target, effects)
        case cst.AsName():
            _target(node.name, effects)
        case cst.Del():
            _target(node.target, effects)
        case cst.FunctionDef():
            effects.names.add(node.name.value)
        case cst.Call():
            _call(node, effects)
        case cst.Yield():
            effects.yields = True
    for child in children(node):
        if isinstance(child, cst.BaseStatement):
            inner = _effects(child, wanted)
            effects.names |= inner.names
            effects.attributes |= inner.attributes
            effects.calls += inner.calls
            effects.reads |= inner.reads
            effects.yields |= inner.yields
        else:
            _collect(child, effects, wanted)


def _call(node: cst.Call, effects: Effects) -> None:
    if isinstance(node.func, cst.Attribute):
        effects.calls.append(node)
        if node.func.attr.value in _REGISTERING and node.args and isinstance(node.func.value, cst.Name):
            key = node.args[0].value
            if isinstance(key, cst.SimpleString):
                effects.attributes.add((node.func.value.value, str(key.evaluated_value)))
    elif isinstance(node.func, cst.Name) and node.func.value == "setattr" and len(node.args) == 3:
        owner, key = node.args[0].value, node.args[1].value
        if isinstance(owner, cst.Name) and isinstance(key, cst.SimpleString):
            effects.attributes.add((owner.value, str(key.evaluated_value)))


def _target(target: cst.CSTNode, effects: Effects) -> None:
    match target:
        case cst.Name():
            effects.names.add(target.value)
        case cst.Attribute():
            if isinstance(target.value, cst.Name):
                effects.attributes.add((target.value.value, target.attr.value))
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _target(element.value, effects)
        case cst.Subscript():
            _target(target.value, effects)
