"""In which order a draft's class joins the token's embedding and the hidden state: what its ``fc`` or ``qkv`` is fed.

A syntactic fact: a ``torch.cat`` of two in a function, each told by where its value comes from in that function: an
embedding that was looked up or handed in, or a hidden state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from eaglelint.source.index import FunctionInfo
from eaglelint.source.slices import Slice
from eaglelint.source.tree import SourceModule
from eaglelint.source.walk import walk
from eaglelint.survey.facts import Join
from eaglelint.survey.places import place_of_node
from eaglelint.survey.readers import functions_of

__all__ = ["join_of", "joins_in"]

Origin = Literal["embedding", "hidden state"]
_CATS = frozenset(["torch.cat", "torch.concat", "torch.concatenate"])
_WEIGHS = re.compile(r"(?:^|_)(?:gate|confidence)(?:_|$)")
_HELD = ("hidden_states", "hidden_state", "input_embeds", "inputs_embeds")


def join_of(modules: Iterable[SourceModule]) -> Join | None:
    """The one order in which these files join the two; None where there is none, or more than one."""
    found = [join for module in modules for join in joins_in(module)]
    return found[0] if len({join.order for join in found}) == 1 else None


def joins_in(module: SourceModule) -> Iterator[Join]:
    """Every place in a file at which an embedding and a hidden state are joined."""
    for name, info in functions_of(module):
        if "torch.c" not in module.text(info.line, info.end_line) or "Confidence" in name.partition(".")[0]:
            continue
        try:
            piece = module.slice(info.line, info.end_line)
        except SyntaxError:
            continue
        yield from _joins(_Function.read(piece, info), piece)


def _joins(function: _Function, piece: Slice) -> Iterator[Join]:
    aside = {id(value) for value in _weighing(function, piece)}
    for node in walk(piece.body[0]):
        if id(node) in aside:
            continue
        match node:
            case cst.Call(
                func=func,
                args=[cst.Arg(value=(cst.List() | cst.Tuple()) as parts), *_],
            ) if len(parts.elements) == 2 and piece.code(func) in _CATS:
                origins = [function.origins(part.value, frozenset()) for part in parts.elements]
                if all(len(origin) == 1 for origin in origins) and origins[0] != origins[1]:
                    (first,), (second,) = origins
                    yield Join((first, second), place_of_node(piece, node))


def _weighing(function: _Function, piece: Slice) -> Iterator[cst.BaseExpression]:
    """What gates and confidence heads are fed: they weigh what the draft has computed, and are not its input."""
    for node in walk(piece.body[0]):
        if isinstance(node, cst.Call) and _WEIGHS.search(piece.code(node.func).rpartition(".")[2]):
            for argument in node.args:
                yield argument.value
                if isinstance(argument.value, cst.Name):
                    yield from function.assigned.get(argument.value.value, ())


@dataclass(frozen=True, slots=True)
class _Function:
    """What a function's names may hold: their assignments, and its parameters."""

    piece: Slice
    assigned: dict[str, list[cst.BaseExpression]]
    parameters: frozenset[str]

    @classmethod
    def read(cls, piece: Slice, info: FunctionInfo) -> _Function:
        assigned: dict[str, list[cst.BaseExpression]] = {}
        parameters: set[str] = set()
        for node in walk(piece.body[0]):
            match node:
                case cst.Param(name=cst.Name(value=name)):
                    parameters.add(name)
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    assigned.setdefault(name, []).append(value)
        return cls(piece, assigned, frozenset(parameters))

    def origins(self, node: cst.BaseExpression, passed: frozenset[str]) -> frozenset[Origin]:
        """Where a value may come from; ``passed`` are the names that led here."""
        match node:
            case cst.Call(func=func, args=arguments):
                if "embed" in self.piece.code(func).rpartition(".")[2]:
                    return frozenset(["embedding"])
                inner = [argument.value for argument in arguments if argument.keyword is None]
                if isinstance(func, cst.Attribute):  # x.to(dtype), x.clone()
                    inner.append(func.value)
                return frozenset(origin for part in inner for origin in self.origins(part, passed))
            case cst.Attribute(attr=cst.Name(value=name)):
                return _by_name(name) if name.endswith(_HELD) else frozenset()
            case cst.Name(value=name) if name not in passed:
                values = [value for value in self.assigned.get(name, []) if not _is_the_join(value, self.piece)]
                found = {origin for value in values for origin in self.origins(value, passed | {name})}
                if name in self.parameters:
                    found |= _by_name(name)
                return frozenset(found)
            case cst.Name(value=name) if name in self.parameters:
                return _by_name(name)
            case cst.Subscript(
                value=cst.Name(value=holder), slice=[cst.SubscriptElement(cst.Index(cst.SimpleString() as key))]
            ) if holder in self.parameters:  # kwargs["hidden_states"]
                text = str(key.evaluated_value)
                return _by_name(text) if text.endswith(_HELD) else frozenset()
            case cst.Subscript(value=value):
                return self.origins(value, passed)
            case cst.IfExp(body=body, orelse=orelse):
                return self.origins(body, passed) | self.origins(orelse, passed)
        return frozenset()


def _is_the_join(node: cst.BaseExpression, piece: Slice) -> bool:
    """Whether a value is made behind the join, which says nothing of what went into it."""
    return any(isinstance(inner, cst.Call) and piece.code(inner.func) in _CATS for inner in walk(node))


def _by_name(name: str) -> frozenset[Origin]:
    if "emb" in name.lower():
        return frozenset(["embedding"])
    return frozenset(["hidden state"]) if "hidden" in name.lower() else frozenset()
