"""Modules that are what the names of their classes say: norms, embeddings and projections."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import libcst as cst

from eaglelint.source.construct import function_node
from eaglelint.source.lookup import class_mro, find_method
from eaglelint.source.machine import Machine
from eaglelint.source.operators import add_tensors, normed, whole
from eaglelint.source.slices import Site
from eaglelint.source.values import BoundMethod, ClassValue, Function, Instance, Opaque, Tensor, Unknown

__all__ = ["call_norm", "is_norm", "kinds_of"]

_KINDS = {
    # Not the classes that hold norms beside more: QKNormRoPEAttention, NormAttention, NormalizedEmbedding.
    "norm": re.compile(r"(?i:norm)(?!\w*(?:Attention|Attn|Embedding|MLP|MoE|Block|DecoderLayer))"),
    "embedding": re.compile(r"Embedding$|^embed_tokens$"),
    "linear": re.compile(r"Linear$"),
}
_NONE = frozenset[str]()


def kinds_of(callee: Any, name: str) -> frozenset[str]:
    """The kinds that a module is of by the name of its class, or by the attribute's where the class is not known."""
    kind = type(callee)
    if kind is Unknown:
        return _named(name)
    target = callee
    if kind is BoundMethod and callee.function.info.name.startswith("forward"):
        target = callee.receiver
    if type(target) is not Instance or target.layer is not None:
        return _NONE
    return _named(target.cls.info.name if target.cls is not None else target.name)


@lru_cache(maxsize=4096)
def _named(name: str) -> frozenset[str]:
    return frozenset(kind for kind, pattern in _KINDS.items() if pattern.search(name))


def is_norm(callee: Any) -> bool:
    """Whether an object is a norm, by the name of its class."""
    return "norm" in kinds_of(callee, "")


def _class_of(callee: Any) -> ClassValue | None:
    """The class of a norm that is called, or of which a method is, where it is among the sources."""
    cls = getattr(callee.receiver if isinstance(callee, BoundMethod) else callee, "cls", None)
    return cls if isinstance(cls, ClassValue) else None


def _adds_in_place(cls: ClassValue) -> bool:
    """Whether a norm's class runs a fused kernel, which leaves its results in its arguments' memory."""
    return "fused_add" in cls.module.text(cls.info.line, cls.info.end_line)


_ADDS = re.compile(r"add|resid\w*\s*\+|\+\s*\w*resid|\+=", re.IGNORECASE)
_HANDS_ON = re.compile(r"^\s*return [^\n]*,\s*\(?resid\w*\)?$", re.M)


def _hands_on(machine: Machine, cls: ClassValue) -> bool:
    """Whether a norm returns the residual as it came: nothing in its class adds, and it says so."""
    texts = [e.module.text(e.info.line, e.info.end_line) for e in class_mro(machine, cls) if isinstance(e, ClassValue)]
    return not any(map(_ADDS.search, texts)) and any(map(_HANDS_ON.search, texts))


_RESIDUAL = re.compile(r"resid")
_GATE = re.compile(r"g|z|\w*gate\w*|gating")


def _added(
    machine: Machine, callee: Any, cls: ClassValue, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Tensor] | None:
    """Of several tensors, what a norm is handed as the residual; empty where they gate what it gives.

    None where neither its parameters nor the name of its class say so.
    """
    function = callee.function if isinstance(callee, BoundMethod) else find_method(machine, cls, "forward")
    names = _parameters(function) if function is not None else ()
    bound = {**dict(zip(names, args, strict=False)), **kwargs}
    held = [whole(value) for name, value in bound.items() if _RESIDUAL.search(name)]
    if any(map(_RESIDUAL.search, names)):
        return [value for value in held if isinstance(value, Tensor)]
    if "Gated" in cls.info.name or (len(names) > 1 and _GATE.fullmatch(names[1])):
        return []
    return None


def _parameters(function: Function) -> tuple[str, ...]:
    """The names of what a method may be handed by place, none where it hands all on."""
    told, key = function.module.told, ("parameters", function.info.line)
    if key not in told:
        try:
            params = function_node(function)[1].params
        except SyntaxError:
            params = cst.Parameters()
        by_place = (*params.posonly_params, *params.params)[1:]
        told[key] = tuple(each.name.value for each in by_place) if params.star_arg is cst.MaybeSentinel.DEFAULT else ()
    return told[key]  # type: ignore[no-any-return]


def call_norm(machine: Machine, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
    """One tensor: its norm. A tensor and the residual: the norm of their sum, and the sum, the new residual.

    A tensor and its gate: a new state, whatever it is the product of.
    """
    values = [whole(value) for value in (*args, *kwargs.values())]
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors:
        return machine.opaque("the norm of tensors in a list", site)
    if len(tensors) == 1:
        second = kwargs.get("residual", args[1] if len(args) > 1 else None)
        if isinstance(second, Unknown):
            return machine.opaque("the residual of a norm is not known", site)
        return normed(machine, tensors[0])
    cls = _class_of(callee)
    if cls is not None:
        added = _added(machine, callee, cls, args, kwargs)
        if added is not None:
            tensors = [tensors[0], *added]
        if len(tensors) == 1:
            return machine.branch("a gated norm" if site is None else site.callee[0])
        if _hands_on(machine, cls):
            return (normed(machine, tensors[0]), *tensors[1:])  # what else it is handed, it hands on
        if _adds_in_place(cls):
            machine.heap.set(machine.in_place, cls.info.name, None)
            machine.hand(tensors)
    total = tensors[0]
    for tensor in tensors[1:]:
        total = add_tensors(machine, total, tensor, site) if site is not None else Tensor.of(Opaque("a sum"))
    return (normed(machine, total), total)
