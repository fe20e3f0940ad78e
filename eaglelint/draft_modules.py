"""The norms and projections that an engine's draft class builds and loads, by running its ``__init__`` and its loader.

Projections inside of decoder layers are left out: loaders join them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.decoder_layers import place_in_layers

if TYPE_CHECKING:
    from eaglelint.artifacts.checkpoint import Checkpoint
    from eaglelint.artifacts.draft import DraftConfig
    from eaglelint.artifacts.target import TargetConfig
    from eaglelint.engines.base import DraftReads, Engine, EngineSource
    from eaglelint.serving import EngineHandle
    from eaglelint.source.machine import Machine

__all__ = ["BuiltModule", "DraftModules", "built_modules", "draft_modules", "is_norm", "modules_of"]

_DEEPEST = 7
_STEPS = 60_000
_NUMBERED = re.compile(r"norm\.\d+$")
_SHARED = re.compile(r"(?:^|\.)(?:lm_head|\w*embed\w*|wte)$")  # the target's, where the draft has none


@dataclass(frozen=True, slots=True)
class BuiltModule:
    """A norm, or a linear projection outside of the decoder layers.

    Attributes:
        path: Its place in the draft's class, ``model.layers.0.input_layernorm``.
        norm: Whether it is a norm.
        file: The file and line that build it.
    """

    path: str
    norm: bool
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class DraftModules:
    """What one engine's draft class builds for a config.

    Attributes:
        engine: The engine and its release, ``sglang 0.5.9``.
        cls: The class.
        modules: What it builds on every path.
        unknown: Attributes that may hold more of it.
        loaded: The modules that the class's loader fills, by the tensor's name without ``.weight``; None where the
            loader could not be followed. A tensor that is asked for and is not here is left out.
        loader: The file and line of the loader.
    """

    engine: str
    cls: str
    modules: tuple[BuiltModule, ...]
    unknown: tuple[str, ...]
    loaded: tuple[tuple[str, str], ...] | None = None
    loader: tuple[str, int] = ("", 0)


def modules_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The norms, and the projections outside of decoder layers, that a checkpoint has plain weights for."""
    names = (name.removesuffix(".weight") for name in sorted(checkpoint.names) if name.endswith(".weight"))
    return tuple(name for name in names if is_norm(name) or not (place_in_layers(name) or _SHARED.search(name)))


def is_norm(module: str) -> bool:
    """Whether a module's name says that it is a norm."""
    return "norm" in module.rpartition(".")[2].lower() or _NUMBERED.search(module) is not None


def draft_modules(
    handle: EngineHandle, draft: DraftConfig, target: TargetConfig, kind: str, names: Sequence[str]
) -> DraftModules | None:
    """The modules of the class that the config names; None where that class is not found or not followed.

    Args:
        handle: The engine's source.
        draft: The draft's config.
        target: The target's.
        kind: The kind of draft that it is served as.
        names: The modules that the checkpoint has weights for, as it names them.
    """
    from eaglelint.engines.base import DraftReads

    parts = (vars(handle.engine), draft.data, target.data, target.num_layers, kind, tuple(names))
    return handle.source.remember(
        "draft's modules",
        parts,
        lambda: built_modules(handle.engine, handle.source, draft.data, target, kind, names, DraftReads()),
    )


def built_modules(
    engine: Engine,
    source: EngineSource,
    draft: dict[str, Any],
    target: TargetConfig,
    kind: str,
    names: Sequence[str],
    reads: DraftReads,
) -> DraftModules | None:
    """The same, from the interpretation itself, which notes the keys that it reads of the draft's config."""
    from eaglelint.engines.base import config_object
    from eaglelint.recursion import deep_recursion
    from eaglelint.source.machine import Budget, BudgetExceeded, Machine
    from eaglelint.source.stubs import load_stubs

    machine = Machine(
        source.tree, stubs=load_stubs(engine.name), budget=Budget(steps=_STEPS), num_layers=target.num_layers
    )

    def run() -> DraftModules | None:
        engine.prepare(machine, source, kind)
        own = config_object(machine, draft, reads=reads, name="the draft's config")
        verifier = config_object(machine, target.data, name="the target's config")
        model = engine.build_draft(machine, source, kind, own, verifier)
        if model is None or model.cls is None:
            return None
        walk = _Walk(machine, [])
        modules = tuple(walk.below(model, "", _DEEPEST))
        built = DraftModules(source.label, model.cls.info.name, modules, tuple(walk.unknown))
        return _with_loaded(machine, model, built, names)

    try:
        with deep_recursion():
            outcomes = machine.explore(run, None)
    except (BudgetExceeded, RecursionError):
        return None
    found = [outcome.value for outcome in outcomes if outcome.raised is None and outcome.value is not None]
    if not found:
        return None
    first: DraftModules = found[0]
    always = [module for module in first.modules if all(module in other.modules for other in found)]
    sometimes = {module.path for other in found for module in other.modules if module not in always}
    unknown = {path for other in found for path in other.unknown} | sometimes
    loaded = first.loaded if all(other.loaded == first.loaded for other in found) else None
    return replace(first, modules=tuple(always), unknown=tuple(sorted(unknown)), loaded=loaded)


def _with_loaded(machine: Machine, model: Any, built: DraftModules, names: Sequence[str]) -> DraftModules:
    """What the loader of the class makes of these modules of a checkpoint, each handed over as its weight."""
    from eaglelint.source.calls import call_value
    from eaglelint.source.lookup import find_method
    from eaglelint.source.machine import Raised
    from eaglelint.source.values import BoundMethod, External, Instance, Partial

    loader = find_method(machine, model.cls, "load_weights")
    if loader is None:
        return built
    filled: list[tuple[str, str]] = []

    def fill(_: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Any) -> None:
        param, weight = args[0], args[1] if len(args) > 1 else kwargs.get("loaded_weight")
        if isinstance(param, Instance) and isinstance(weight, Instance):
            filled.append((weight.name.removesuffix(".weight"), param.name.removesuffix(".weight")))

    def parameters(_: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Any) -> Any:
        return machine.heap.born([(param.name, param) for param in made])

    by_loader = Partial(External("draft.filled"), (), {})
    made = [
        Instance(None, name=f"{module.path}.weight", attrs={"weight_loader": by_loader}) for module in built.modules
    ]
    machine.intercepts |= {"draft.filled": fill, "draft.parameters": parameters, "default_weight_loader": fill}
    model.attrs["named_parameters"] = Partial(External("draft.parameters"), (), {})
    weights = [(f"{name}.weight", Instance(None, name=f"{name}.weight")) for name in names]
    place = (loader.module.display, loader.info.line)

    def run() -> None:
        filled.clear()
        call_value(machine, BoundMethod(loader, model), (machine.heap.born(weights),), {}, None)

    try:
        outcomes = machine.explore(run, None)
    except Raised:
        return replace(built, loader=place)
    if len(outcomes) != 1 or outcomes[0].raised is not None or not filled:
        return replace(built, loader=place)
    return replace(built, loaded=tuple(filled), loader=place)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk through what ``__init__`` of a module and of those in it assigns; ``unknown`` is what may be one."""

    machine: Machine
    unknown: list[str]

    def below(self, value: Any, path: str, deepest: int) -> Iterator[BuiltModule]:
        from eaglelint.source.lookup import is_module
        from eaglelint.source.modules import assigned_along
        from eaglelint.source.values import Instance, Unknown

        items = value.payload if isinstance(value, Instance) and isinstance(value.payload, list | tuple) else value
        if isinstance(items, list | tuple):
            for index, item in enumerate(items):
                yield from self.below(item, f"{path}.{index}", deepest - 1)
        elif isinstance(value, Unknown):
            self.unknown.append(path)
        elif isinstance(value, Instance) and (kind := _kind(value)) is not None:
            if kind == "norm" and not self._has_weight(value):
                return
            site = value.made[-1] if value.made else None
            outside = place_in_layers(path) is None and not _SHARED.search(path)
            if site is not None and (kind == "norm" or (kind == "linear" and outside)):
                yield BuiltModule(path, kind == "norm", site.path, site.line)
        elif isinstance(value, Instance) and value.cls is not None and is_module(self.machine, value):
            if deepest == 0:
                self.unknown.append(path)
                return
            if place_in_layers(f"{path}.x") is not None and not self._mentions_norms(value.cls):
                return
            for name in assigned_along(self.machine, value.cls):
                yield from self.below(self._attribute(value, name), f"{path}.{name}" if path else name, deepest - 1)

    def _mentions_norms(self, cls: Any) -> bool:
        from eaglelint.source.lookup import class_mro
        from eaglelint.source.values import ClassValue

        entries = (entry for entry in class_mro(self.machine, cls) if isinstance(entry, ClassValue))
        return any("Norm" in entry.module.text(entry.info.line, entry.info.end_line) for entry in entries)

    def _attribute(self, module: Any, name: str) -> Any:
        from eaglelint.source.lookup import get_attribute
        from eaglelint.source.machine import Raised
        from eaglelint.source.values import Unknown

        try:
            return get_attribute(self.machine, module, name)
        except Raised as raised:
            return Unknown(str(raised))

    def _has_weight(self, norm: Any) -> bool:
        from eaglelint.source.lookup import MISSING

        if norm.cls is None:
            return norm.kwargs.get("elementwise_affine", True) is not False
        return not (self._attribute(norm, "weight") is MISSING or self._attribute(norm, "weight") is None)


def _kind(module: Any) -> str | None:
    """A norm, a linear projection, or another module without any below it; None for one that holds others."""
    name = (module.cls.info.name if module.cls is not None else module.name).rpartition(".")[2]
    if name.endswith("Norm"):
        return "norm"
    if name.endswith("Linear"):
        return "linear"
    return "other" if module.cls is None or "Embedding" in name or "Head" in name else None
