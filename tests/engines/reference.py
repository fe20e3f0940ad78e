"""The small engine run for real, on tensors that are sums of named terms: what it captures, beyond any doubt.

``torch`` is replaced by the few classes below. A tensor is a mutable multiset of terms, so that adding in place,
aliases and clones behave as they do in PyTorch.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

__all__ = ["captured"]

_WIDTH = 16
_TOKENS = 7


class _Tensor:
    def __init__(self, terms: Counter[Any], parts: list[_Tensor] | None = None) -> None:
        self.terms = terms
        self.parts = parts
        self.shape = (_TOKENS, _WIDTH)

    @property
    def key(self) -> frozenset[Any]:
        return frozenset(self.terms.items())

    def __add__(self, other: Any) -> _Tensor:
        return _Tensor(self.terms + self._terms_of(other))

    def __iadd__(self, other: Any) -> _Tensor:
        self.terms.update(self._terms_of(other))
        return self

    __radd__ = __add__
    add = __add__
    add_ = __iadd__

    def __mul__(self, other: Any) -> _Tensor:
        return _Tensor(Counter({("scaled", self.key): 1}))

    __rmul__ = __truediv__ = __sub__ = __mul__

    def __imul__(self, other: Any) -> _Tensor:
        self.terms = Counter({("scaled", self.key): 1})
        return self

    def _terms_of(self, other: Any) -> Counter[Any]:
        if other == 0:
            return Counter()
        if not isinstance(other, _Tensor):
            raise TypeError(f"a tensor and {other!r}")
        return other.terms

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def clone(self) -> _Tensor:
        return _Tensor(Counter(self.terms))

    def copy_(self, other: _Tensor) -> _Tensor:
        self.terms = Counter(other.terms)
        return self

    def view(self, *shape: Any) -> _Tensor:
        return self

    reshape = contiguous = to = detach = view

    def __getitem__(self, key: Any) -> _Tensor:
        return self

    def size(self, axis: int = 0) -> int:
        return self.shape[axis]

    def new_empty(self, *shape: Any) -> _Buffer:
        return _Buffer()


class _Buffer:
    def __init__(self) -> None:
        self.places: dict[int, _Tensor] = {}

    def __getitem__(self, key: Any) -> Any:
        start = key[-1].start or 0
        return SimpleNamespace(copy_=lambda value: self._write(start, value))

    def __setitem__(self, key: Any, value: _Tensor) -> None:
        self._write(key[-1].start or 0, value)

    def _write(self, start: int, value: _Tensor) -> None:
        self.places[start] = value.clone()


class _Module:
    """``torch.nn.Module``; a ``weight`` norms what it is multiplied with."""

    def __init__(self, *args: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "DecoderLayer" in type(self).__name__:
            _Run.current.enter(*(*args, *kwargs.values())[:2])  # the stream; what comes after it is beside it
            result = self.forward(*args, **kwargs)
            _Run.current.leave(result)
            return result
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    @property
    def weight(self) -> Any:
        return _Weight()


class _Weight:
    def __mul__(self, x: _Tensor) -> _Tensor:
        return _Tensor(Counter({("norm", x.key): 1}))


class _Branch(_Module):
    def forward(self, x: Any, *rest: Any) -> _Tensor:
        return _Run.current.fresh()


class _ModuleList(_Module, list):  # type: ignore[type-arg]
    def __init__(self, items: Any = ()) -> None:
        list.__init__(self, items)


class _ModuleDict(_Module, dict):  # type: ignore[type-arg]
    def __init__(self, items: Any = ()) -> None:
        dict.__init__(self, items)


class _Run:
    """One forward pass: which sums passed from layer to layer."""

    current: _Run

    def __init__(self) -> None:
        self.count = 0
        self.depth = 0
        self.entries: list[Counter[Any]] = []
        self.last: Counter[Any] = Counter()
        self.branches: dict[frozenset[Any], int] = {}
        self.handed: list[_Tensor] = []

    def fresh(self) -> _Tensor:
        self.count += 1
        return _Tensor(Counter({f"t{self.count}": 1}))

    def enter(self, *values: Any) -> None:
        self.handed = [value for value in values if isinstance(value, _Tensor)]
        self.entries.append(_total(values))

    def leave(self, result: Any) -> None:
        parts = result if isinstance(result, tuple) else (result,)
        tensors = [part for part in parts if isinstance(part, _Tensor)]
        # A norm of the stream that a layer is handed beside it, and that it does not add, is no part of it.
        beside = [value for value in self.handed if _is_norm_of(value, self.handed)]
        if beside and not any(term in part.terms for value in beside for term in value.terms for part in tensors):
            self.entries[-1] = _total([value for value in self.handed if value not in beside])
            parts = tuple(part for part in parts if not _is_norm_of(part, tensors))
        self.last = _total(parts)
        self.branches[parts[0].key] = len(self.entries)


def _is_norm_of(value: Any, others: list[_Tensor]) -> bool:
    return isinstance(value, _Tensor) and any(value.terms == {("norm", other.key): 1} for other in others)


def _total(values: Any) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for value in values:
        if isinstance(value, _Tensor):
            total += value.terms
    return total


def _cat(tensors: Any, dim: int = 0) -> Any:
    return _Tensor(Counter(), list(tensors))


def _fakes() -> dict[str, ModuleType]:
    torch, nn, transformers = ModuleType("torch"), ModuleType("torch.nn"), ModuleType("transformers")
    vars(nn).update(Module=_Module, Linear=_Branch, Embedding=_Branch, ModuleList=_ModuleList, ModuleDict=_ModuleDict)
    vars(torch).update(nn=nn, Tensor=_Tensor, cat=_cat, empty=lambda *a, **k: _Buffer())
    vars(transformers).update(AutoConfig=None)
    return {"torch": torch, "torch.nn": nn, "transformers": transformers}


@contextmanager
def _imported(root: Path) -> Iterator[ModuleType]:
    def forget() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "sglang"]:
            del sys.modules[name]

    fakes = _fakes()
    before = {name: sys.modules.get(name) for name in fakes}
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    forget()
    importlib.invalidate_caches()
    sys.modules.update(fakes)
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module("sglang.srt.models.llama")
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = bytecode
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
        forget()


def captured(root: Path, ids: list[int] | None, num_layers: int = 12) -> list[str]:
    """The states that reach the logits processor: ``h[k]``, ``norm(h[k])``, ``partial(h[k])``, else ``other``.

    Raises:
        Exception: Whatever the model raises.
    """
    with _imported(root) as module:
        run = _Run.current = _Run()
        config = SimpleNamespace(num_hidden_layers=num_layers, hidden_size=_WIDTH, vocab_size=8)
        model = module.LlamaForCausalLM(config)
        model.set_eagle3_layers_to_capture(ids)
        given: list[Any] = []
        model.logits_processor = lambda *args: given.append(args[4])
        model.forward(None, None, SimpleNamespace())
    aux = given[0]
    if isinstance(aux, _Tensor) and aux.parts is not None:
        aux = aux.parts
    if isinstance(aux, _Buffer):
        aux = [aux.places[place] for place in sorted(aux.places)]
    boundaries = {frozenset(entry.items()): k for k, entry in reversed(list(enumerate(run.entries)))}
    boundaries.setdefault(frozenset(run.last.items()), len(run.entries))
    names = []
    for state in aux or []:
        term = next(iter(state.terms)) if len(state.terms) == 1 else None
        if state.key in boundaries:
            names.append(f"h[{boundaries[state.key]}]")
        elif isinstance(term, tuple) and term[0] == "norm" and term[1] in boundaries:
            names.append(f"norm(h[{boundaries[term[1]]}])")
        elif state.key in run.branches:
            names.append(f"partial(h[{run.branches[state.key]}])")
        else:
            names.append("other")
    return names
