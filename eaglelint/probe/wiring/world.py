"""The world in which a model runs: which operations keep states apart, what norms do, which layer is being run.

Sums, copies, slices and joins of states are torch's own. Whatever else is done to a state, a product of two, an
activation, a kernel, gives a stand-in: a state of unknown contents, which gets a signature of its own once it is added
to a state or handed on. So no answer rests on what a product of signatures happens to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from eaglelint.probe.wiring.facts import function_fact, is_collective, value_fact
from eaglelint.probe.wiring.operations import ADDING, CASTS, KEEPING, SCALING
from eaglelint.probe.wiring.parts import StandInBase, StandInModule
from eaglelint.probe.wiring.ranks import Ranks, UnknownExchange
from eaglelint.probe.wiring.signatures import WIDTH, Signatures, is_state
from eaglelint.probe.wiring.standin import StandIn, hooks

__all__ = ["Entry", "World"]

_NORM = re.compile(r"Norm(?!.*(?:Gat|Linear|Attn|Attention))")
_NORM_FUNCTION = re.compile(r"rms_?norm|layer_?norm", re.IGNORECASE)
_EMBEDDING = re.compile(r"^(?!.*(?:Rotary|Rope|Position|Vision|Patch|Timestep)).*Embedding")
_PARTIAL = re.compile(r"RowParallelLinear|FusedMoE|Experts?$")  # each rank has a part of the sum
_CALL_MODULE = nn.Module.__call__


@dataclass(slots=True)
class Entry:
    """What one call of a decoder layer was handed, as it was then."""

    group: int
    index: int
    states: list[Any]
    results: list[Any] = field(default_factory=list)


class World:
    """One run: the signatures, the layers that ran, the norms outside of them, and what was stood in for."""

    def __init__(self, *, fused_in_place: bool, ranks: Ranks | None = None) -> None:
        self.fused_in_place = fused_in_place
        self.ranks = ranks or Ranks()
        self.signatures = Signatures(self.ranks)
        self.layer_of: dict[int, tuple[int, int]] = {}
        self.entries: list[Entry] = []
        self.final: list[tuple[int, Any]] = []  # how many layers had run, and what a norm outside of them was given
        self.stood_in: dict[str, str] = {}
        self.collectives: set[str] = set()
        self.layers: list[Entry] = []
        self.running = False
        self._classes: dict[str, type[nn.Module]] = {}

    # States

    @property
    def layer(self) -> int:
        """The decoder layer that is being run; -1 before the first, beyond all others after it."""
        return self.layers[-1].index if self.layers else (-1 if not self.entries else self.entries[-1].index + 10_000)

    def state(self, value: Any, like: Any = None) -> Any:
        """The state that a stand-in stands for, always the same; other values as they are."""
        if not isinstance(value, StandIn):
            return value
        if value.standin_made is None:
            made = self.signatures.new(self.layer, str(value.standin_name), like=like)
            value.__dict__["standin_made"] = made
        return value.standin_made

    def states(self, value: Any) -> Any:
        """Stand-ins for states in a result, made states."""
        if isinstance(value, StandIn) and value.standin_state:
            return self.state(value)
        if type(value) is tuple:
            return tuple(map(self.states, value))
        if type(value) is list:
            value[:] = map(self.states, value)  # in place: it may be a list that captured states are appended to
        return value

    # Calls

    def call(self, value: StandIn, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of something that is not at hand."""
        name = value.standin_short
        known = function_fact(name, args, kwargs)
        if known is not NotImplemented:
            return known
        given = [*args, *kwargs.values()]
        states = [item for item in given if is_state(item) or (isinstance(item, StandIn) and item.standin_state)]
        if value.standin_state:
            states = [*states, value]
        if self.running and _NORM_FUNCTION.search(name) and any(map(is_state, given)):
            return self._norm_function(name, states)
        if states and is_collective(name):
            self.collectives.add(name)
            try:
                return self.ranks.exchange(name, [self.state(item) for item in states], args, kwargs)
            except UnknownExchange as error:
                self.note(name, error)
                return StandIn(f"{value.standin_name}()", state=True)
        if not states and name[:1].isupper() and any(letter.islower() for letter in name):
            return self.stand_in_class(name)(*args, **kwargs)
        if self.running and states:
            self._write_outputs(name, kwargs)
        tensors = any(isinstance(item, torch.Tensor) for item in given)
        return StandIn(f"{value.standin_name}()", state=self.running and (bool(states) or tensors))

    def stand_in_class(self, name: str) -> type[nn.Module]:
        if name not in self._classes:
            self._classes[name] = type(name, (StandInModule,), {"standin_kind": name})
        return self._classes[name]

    def base(self, name: str, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a class is derived from, where its base is not at hand."""
        others = [base for base in bases if isinstance(base, type)]
        if any(issubclass(base, nn.Module) for base in others) or name.endswith(("Mixin", "Base", "Config", "Inputs")):
            return (StandInBase,) if StandInBase not in others else ()
        if any(base is not object for base in others):
            return ()
        return (self.stand_in_class(name),)

    def module(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a module: a decoder layer, a norm, a part that is not at hand, or one that is."""
        if not self.running:
            return _CALL_MODULE(module, *args, **kwargs)
        place = self.layer_of.get(id(module))
        if place is not None:
            return self._layer(module, place, args, kwargs)
        name = type(module).__name__
        given = [*args, *kwargs.values()]
        if _NORM.search(name) and any(map(_is_any_state, given)):
            states = [item for item in given if is_state(item) or isinstance(item, StandIn)]
            return self.norm(name, states, in_place=self.fused_in_place)
        if isinstance(module, StandInModule) and type(module).forward is StandInModule.forward:
            if _EMBEDDING.search(name):
                return self.signatures.new(self.layer, f"{name}()")
            self._write_outputs(name, kwargs)
            if self.ranks.size > 1 and _PARTIAL.search(name):
                return self._partial(module, name, kwargs)
            return StandIn(f"{name}()", state=True)
        if isinstance(module, nn.Embedding):
            return self.signatures.new(self.layer, "Embedding()")
        try:
            return _CALL_MODULE(module, *args, **kwargs)
        except Exception as error:
            if not self.layers:
                raise
            self.note(f"{name}.forward", error)
            self._write_outputs(name, kwargs)
            return StandIn(f"{name}()", state=True)

    def _partial(self, module: Any, name: str, kwargs: dict[str, Any]) -> StandIn:
        """The result of a part that each rank computes a summand of; the engine's own reduce it unless told not to."""
        state = self.signatures.new(self.layer, f"{name}()", own=True)
        reduces = module.standin_arguments.get("reduce_results", "Row" in name)
        if reduces and not kwargs.get("skip_all_reduce"):
            state = self.ranks.exchange("all_reduce", [state], (), {})
        result = StandIn(f"{name}()", state=True)
        result.__dict__["standin_made"] = state
        result[0], result[1] = state, None
        return result

    def note(self, what: str, error: BaseException) -> None:
        """Something was stood in for, because of an error."""
        self.stood_in.setdefault(what, f"{type(error).__name__}: {error}"[:200])

    def _write_outputs(self, name: str, kwargs: dict[str, Any]) -> None:
        for key in ("output", "out"):
            if is_state(kwargs.get(key)):
                kwargs[key].copy_(self.signatures.new(self.layer, f"{name}({key}=)", like=kwargs[key]))

    def _layer(self, module: Any, place: tuple[int, int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.layers:  # a layer inside a layer is one of its parts
            return _CALL_MODULE(module, *args, **kwargs)
        args = tuple(self.states(item) for item in args)
        kwargs = {key: self.states(item) for key, item in kwargs.items()}
        handed = [item for item in (*args, *kwargs.values()) if is_state(item) and item.shape[-1] == WIDTH]
        entry = Entry(*place, [item.clone() for item in handed])
        self.entries.append(entry)
        self.layers.append(entry)
        try:
            result = self.states(_CALL_MODULE(module, *args, **kwargs))
        finally:
            self.layers.pop()
        results = result if isinstance(result, tuple | list) else [result]
        entry.results = [item.clone() for item in results if is_state(item) and item.shape[-1] == WIDTH]
        return result

    def _norm_function(self, name: str, states: list[Any]) -> Any:
        """A norm that is a function; what adds in place is called so, and what reduces between ranks first."""
        if "all" in name and "reduce" in name:
            states = [self.ranks.exchange("all_reduce", [self.state(states[0], states[-1])], (), {}), *states[1:]]
        return self.norm(name, states, in_place=self.fused_in_place or "fused_add" in name)

    def norm(self, name: str, states: list[Any], *, in_place: bool) -> Any:
        """A norm of one state, or of the sum of two, which then takes the residual's place."""
        known = next((item for item in states if is_state(item)), None)
        if known is None and len(states) == 1:
            return StandIn(f"{name}()", state=True)
        first, *rest = [self.state(item, like=known) for item in states[:2]]
        if known is not None and any(item.shape != first.shape for item in rest):
            return StandIn(f"{name}()", state=True)
        total = rest[0] + first if rest else first
        if not self.layers:
            self.final.append((len(self.entries), total.clone()))
        own = not self.ranks.same(total)
        normed = self.signatures.new(self.layer, f"{name}()", normed=total.clone(), like=first, own=own)
        if not rest:
            return normed
        if in_place:
            rest[0].copy_(total)
            first.copy_(normed)
            return first, rest[0]
        return normed, total

    # Operations

    def operate(self, name: str, args: tuple[Any, ...]) -> Any:
        """An operator with a stand-in on one side."""
        if any(is_state(item) for item in args):
            return self.torch(getattr(torch.Tensor, f"__{name}__"), args, {})
        state = any(_is_any_state(item) for item in args)
        named = next(item for item in args if isinstance(item, StandIn))
        return StandIn(f"{named.standin_short} {name}", state=state)

    def torch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function of torch, on states, stand-ins and other tensors."""
        flat = list(_flat((*args, *kwargs.values())))
        stand_ins = [item for item in flat if isinstance(item, StandIn)]
        states = [item for item in flat if is_state(item)]
        if not stand_ins and not states:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        joined = not self.layers and "cat" in name and all(item.standin_state for item in stand_ins)
        if name in ADDING and (states or joined):
            like = max(states, key=lambda state: state.numel()) if states else None
            if stand_ins and name in ("__setitem__", "copy_") and not is_state(args[-1]):
                like = args[0]
            given = _mapped((args, kwargs), lambda item: self.state(item, like) if isinstance(item, StandIn) else item)
            return self._kept(func, name, *given)
        if stand_ins and name == "__setitem__":
            return None
        if not stand_ins and name in KEEPING:
            return self._kept(func, name, args, kwargs)
        others = [item for item in args if not is_state(item)]
        if len(states) == 1 and name in SCALING and not stand_ins and all(map(_is_scalar, others)):
            return func(*args, **kwargs)
        if name == "pow" or not states:
            return StandIn(f"torch.{name}()", state=True)
        changed = name.endswith("_") and not name.endswith("__") and is_state(args[0])
        if changed or (name.startswith("__i") and name.endswith("__") and is_state(args[0])):
            args[0].copy_(self.signatures.new(self.layer, f"torch.{name}()", like=args[0]))
            return args[0]
        if is_state(kwargs.get("out")):
            kwargs["out"].copy_(self.signatures.new(self.layer, f"torch.{name}(out=)", like=kwargs["out"]))
            return kwargs["out"]
        return StandIn(f"torch.{name}()", state=True)

    def _kept(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in CASTS and is_state(args[0]):
            return args[0]  # a state keeps its type: it is exact in float64 alone
        if name in {"__get__", "__set__"}:
            return func(*args, **kwargs)
        if name in ("empty_like", "new_empty", "zeros_like", "new_zeros"):
            kwargs = {key: value for key, value in kwargs.items() if key not in ("dtype", "device")}
            return func(*args, **kwargs).zero_()
        mixed = [item for item in _flat((args, kwargs)) if isinstance(item, torch.Tensor) and item.is_floating_point()]
        if name in ADDING and any(not is_state(item) for item in mixed):
            # Not a sum of states: a bias, a tensor of other contents.
            return StandIn(f"torch.{name}()", state=True)
        return func(*args, **kwargs)

    # Set up

    def install(self) -> None:
        """Make stand-ins and modules act in this world."""
        hooks.fact = value_fact
        hooks.call = self.call
        hooks.operate = self.operate
        hooks.torch = self.torch
        hooks.base = self.base
        world = self

        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            return world.module(module, args, kwargs)

        nn.Module.__call__ = called

    def mode(self) -> TorchFunctionMode:
        """Torch's functions act as this world has it."""
        return _Mode(self)


class _Mode(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.world.torch(func, args, kwargs or {})


def _is_any_state(value: Any) -> bool:
    return is_state(value) or (isinstance(value, StandIn) and bool(value.standin_state))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, torch.Tensor) and value.numel() == 1)


def _flat(values: Any) -> Any:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        elif isinstance(value, dict):
            yield from _flat(value.values())
        else:
            yield value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, change) for item in value)
    if type(value) is dict:
        return {key: _mapped(item, change) for key, item in value.items()}
    return change(value)
