"""The statements of a function that lead to one attribute: a backward slice by names, over-approximated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import libcst as cst

from eaglelint.source.reading import altered
from eaglelint.source.walk import children, is_statement

__all__ = ["INITIALISERS", "Effects", "assigned_attributes", "assigns_attribute", "prune"]

INITIALISERS = ("__init__", "__post_init__")
"""What sets the attributes of a new object; the second one runs behind the first that ``dataclass`` writes."""

_MUTATING = frozenset(["add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"])
_REGISTERING = frozenset(["register_buffer", "register_parameter", "register_module", "add_module"])


@dataclass(slots=True)
class Effects:
    """What a statement may change, in depth too, and what it reads. ``calls`` are its calls of methods.

    ``aliases``: plain names that it gives to what an attribute holds. ``handed``: the names and attributes that are
    handed to a call whose result nobody uses, or whose items a loop changes. ``deep``: attributes of which something
    inside is set. ``borrowed``: those that are given something of a parameter, which is made elsewhere.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)
    calls: list[cst.Call] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    aliases: set[tuple[str, tuple[str, str]]] = field(default_factory=set)
    handed: set[str | tuple[str, str]] = field(default_factory=set)
    deep: set[tuple[str, str]] = field(default_factory=set)
    borrowed: set[tuple[str, str]] = field(default_factory=set)
    yields: bool = False


@dataclass(frozen=True, slots=True)
class _Wanted:
    receiver: str
    name: str
    sets_it: Callable[[cst.Call], bool]
    effects: dict[cst.CSTNode, Effects]
    parameters: frozenset[str]
    assigned: Counter[str]  # by how many statements each local variable is
    asides: set[cst.BaseStatement]
    made_here: bool


# self.NAME = ..., self.NAME: T = ..., self.NAME[0] += ..., self.NAME.append(...); not f"{self.NAME=}".
_ASSIGNED = re.compile(
    r"\b\w+\.(\w+)\b(?=(?:\[[^\]\n]*\])?\s*(?::[^=\n]+|(?:[-+*/|&%@^]|\*\*|//|<<|>>)?)=(?![=}!:])|\.(?:"
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
    return name in assigned_attributes(text)


@lru_cache(maxsize=4096)
def assigned_attributes(text: str) -> Counter[str]:
    """The attributes that a method's text may set, and how often."""
    spans = (match.span(match.lastindex or 0) for match in _TARGETS.finditer(text))
    places = {match.start(1): match[1] for match in _ASSIGNED.finditer(text)}
    places |= {match.start(1): match[1] for span in spans for match in _TARGET.finditer(text, *span)}
    return Counter(places.values())


def prune(
    body: Sequence[cst.BaseStatement],
    receiver: str,
    name: str,
    sets_it: Callable[[cst.Call], bool],
    effects: dict[cst.CSTNode, Effects],
    parameters: frozenset[str] = frozenset(),
    asides: set[cst.BaseStatement] | None = None,
) -> list[cst.BaseStatement]:
    """The statements of ``body`` that may contribute to ``receiver.name``, compound statements thinned out.

    Args:
        body: The statements of an ``__init__``.
        receiver: The name of its first parameter.
        name: The attribute asked for.
        sets_it: Whether a call, ``super().__init__(...)`` or ``self.method(...)``, sets the attribute elsewhere.
        effects: What each statement of this function changes and reads; filled on first use.
        parameters: The function's parameters, whose values come from elsewhere.
        asides: Gets the kept calls and loops that may change what is asked for in depth, or not.
    """
    asides = set() if asides is None else asides
    wanted = _Wanted(receiver, name, sets_it, effects, parameters | {receiver}, Counter(), asides, True)
    found = [_effects(statement, wanted) for statement in body]
    made_here = not any((receiver, name) in each.borrowed for each in found)
    assigned = Counter(local for each in found for local in each.names)
    wanted = replace(wanted, assigned=assigned, made_here=made_here)
    changed = {owner for each in found for owner, _ in (*each.attributes, *each.deep)}
    needed = {alias for each in found for alias, origin in each.aliases if origin == (receiver, name)} & changed
    needed = needed if made_here else set()
    while True:
        before = len(needed)
        asides.clear()
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
    effects = _effects(statement, wanted)
    if not _contributes(effects, wanted, needed):
        if not effects.handed or not wanted.made_here:
            return None
        handed = effects.handed & {*(needed - wanted.parameters), (wanted.receiver, wanted.name)}
        others = (name for name in effects.reads - needed if wanted.assigned[name] > (name in effects.names))
        if not handed or any(others):
            return None  # or it reads what nothing else needs
        wanted.asides.add(statement)
        return statement
    if type(statement) is cst.If:
        return _thin_if(statement, wanted, needed)
    if (
        type(statement) is cst.With
        and type(statement.body) is cst.IndentedBlock
        and not _sets_around(statement, wanted)
    ):
        inner = _keep(statement.body.body, wanted, needed)
        for item in statement.items:
            needed |= _effects(item, wanted).reads
        return altered(statement, body=altered(statement.body, body=inner))
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
        body = altered(body, body=inner)
    if isinstance(orelse, cst.If):
        orelse = _thin_if(orelse, wanted, needed)
        useful = useful or orelse is not None
    elif isinstance(orelse, cst.Else) and isinstance(orelse.body, cst.IndentedBlock):
        inner = _keep(orelse.body.body, wanted, needed)
        useful = useful or bool(inner)
        orelse = altered(orelse, body=altered(orelse.body, body=inner))
    if not useful:
        return None
    needed |= _effects(statement.test, wanted).reads
    return altered(statement, body=body, orelse=orelse)


def _contributes(effects: Effects, wanted: _Wanted, needed: set[str]) -> bool:
    if effects.yields or not effects.names.isdisjoint(needed):
        return True
    if effects.attributes and (
        (wanted.receiver, wanted.name) in effects.attributes
        # part.NAME = ... changes what is kept in part
        or any(owner in needed and owner not in wanted.parameters for owner, _ in effects.attributes)
    ):
        return True
    if effects.deep and wanted.made_here and (wanted.receiver, wanted.name) in effects.deep:
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
    while type(node) is cst.Attribute or type(node) is cst.Arg:
        node = node.value  # neither the attribute's own name nor the keyword
    if type(node) is cst.Name:
        effects.reads.add(node.value)
        return
    tell = _TELLING.get(type(node))
    if tell is not None:
        tell(node, effects, wanted)
        if type(node) is cst.ImportAlias:
            return
    for child in children(node):
        if is_statement(child):
            inner = _effects(child, wanted)
            effects.names |= inner.names
            effects.attributes |= inner.attributes
            effects.calls += inner.calls
            effects.reads |= inner.reads
            effects.yields |= inner.yields
            effects.aliases |= inner.aliases
            effects.handed |= inner.handed
            effects.deep |= inner.deep
            effects.borrowed |= inner.borrowed
        else:
            _collect(child, effects, wanted)
    if type(node) is cst.For:
        items = Effects()
        _target(node.target, items, wanted)
        if items.names & {owner for owner, _ in effects.attributes}:
            inside = Effects()
            _touch(node.iter, inside, wanted)
            effects.handed |= inside.names | inside.attributes  # for layer in self.layers: layer.NAME = ...


def _import(node: cst.ImportAlias, effects: Effects, wanted: _Wanted) -> None:
    bound: cst.CSTNode = node.asname.name if node.asname is not None else node.name
    while isinstance(bound, cst.Attribute):
        bound = bound.value
    if isinstance(bound, cst.Name):
        effects.names.add(bound.value)


def _assign(node: cst.Assign, effects: Effects, wanted: _Wanted) -> None:
    targets = [each.target for each in node.targets]
    if len(targets) == 1 and isinstance(targets[0], cst.Name):
        origin = Effects()
        if isinstance(node.value, cst.Attribute | cst.Subscript):
            _touch(node.value, origin, wanted)
        effects.aliases |= {(targets[0].value, source) for source in origin.attributes}
    else:
        _borrow(targets, node.value, effects, wanted)


def _annotated(node: cst.AnnAssign, effects: Effects, wanted: _Wanted) -> None:
    _target(node.target, effects, wanted)
    _borrow([node.target], node.value, effects, wanted)


def _borrow(
    targets: list[cst.BaseAssignTargetExpression],
    value: cst.BaseExpression | None,
    effects: Effects,
    wanted: _Wanted,
) -> None:
    if value is None or _root(value) not in wanted.parameters:
        return
    for target in targets:
        if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            effects.borrowed.add((target.value.value, target.attr.value))


def _alone(node: cst.Expr, effects: Effects, wanted: _Wanted) -> None:
    """A call for its own sake is there for what it does to what it is handed."""
    call = node.value
    if not isinstance(call, cst.Call) or _is_initialiser(call):
        return
    handed = Effects()
    if isinstance(call.func, cst.Attribute):
        _touch(call.func.value, handed, wanted)
    _touch(call, handed, wanted)
    effects.handed |= handed.names | handed.attributes


def _root(node: cst.BaseExpression) -> str | None:
    """The name that an expression reaches its object through: config in config.text_config."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


def _is_initialiser(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in INITIALISERS


def _call(node: cst.Call, effects: Effects, wanted: _Wanted) -> None:
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


def _touch(node: cst.CSTNode, effects: Effects, wanted: _Wanted) -> None:
    """Add what an object is reached through: self.model where self.model.layers[0] may change in depth."""
    match node:
        case cst.Name(value=name) if name not in wanted.parameters:
            effects.names.add(name)
        case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)):
            effects.attributes.add((owner, name))
        case cst.Attribute() | cst.Subscript():
            _touch(node.value, effects, wanted)
        case cst.Call():
            for argument in node.args:  # enumerate(self.layers)
                _touch(argument.value, effects, wanted)


def _target(target: cst.CSTNode, effects: Effects, wanted: _Wanted) -> None:
    match target:
        case cst.Name():
            effects.names.add(target.value)
        case cst.Attribute():
            if isinstance(target.value, cst.Name):
                effects.attributes.add((target.value.value, target.attr.value))
            else:
                inside = Effects()
                _touch(target.value, inside, wanted)
                effects.names |= inside.names
                effects.deep |= inside.attributes  # self.model.NAME = ... changes what self.model holds
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _target(element.value, effects, wanted)
        case cst.Subscript():
            _target(target.value, effects, wanted)


def _yield(node: cst.Yield, effects: Effects, wanted: _Wanted) -> None:
    effects.yields = True


def _binds(node: Any, effects: Effects, wanted: _Wanted) -> None:
    _target(node.target, effects, wanted)


# What adds the effects of a node by itself.
_TELLING: dict[type[cst.CSTNode], Callable[[Any, Effects, _Wanted], None]] = {
    cst.ImportAlias: _import,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    **dict.fromkeys((cst.AssignTarget, cst.AugAssign, cst.For, cst.NamedExpr, cst.CompFor, cst.Del), _binds),
    cst.AsName: lambda node, effects, wanted: _target(node.name, effects, wanted),
    cst.FunctionDef: lambda node, effects, wanted: effects.names.add(node.name.value),
    cst.Call: _call,
    cst.Expr: _alone,
    cst.Yield: _yield,
}
