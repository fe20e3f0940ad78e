"""vLLM's drafting of several tokens: which of the states that a draft returns goes to its next step.

The runner hands the draft the very state of the target that it has the logits computed of (``hidden_states`` in
v1/worker/gpu_model_runner.py, 0.11.0 to 0.33.0). A draft returns one state for both, or a pair that the proposer takes
apart; which of the two it keeps for the next step is read in its own code.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst

from eaglelint.engines.base import EngineSource, token_indices
from eaglelint.engines.recycling import builds_on
from eaglelint.engines.vllm_registry import module_rows, target_class
from eaglelint.source.calls import call_value
from eaglelint.source.lookup import find_method, get_attribute
from eaglelint.source.machine import Machine
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.tree import Binding, SourceModule
from eaglelint.source.values import BoundMethod, Branch, Input, Instance, Tensor, Unknown
from eaglelint.source.walk import walk

__all__ = ["hands_first", "hands_on", "targets_of"]

_BUFFER = "self.hidden_states"  # what the draft's next step is handed, in every proposer
_COMBINES = "combine_hidden_states"  # a class that takes several states of the target: the first one is of its own kind
_OTHER_STATE = "get_mtp_target_hidden_states"  # the target hands over another one than its logits are made of (0.33.0)


def targets_of(source: EngineSource, module: SourceModule) -> Iterator[Binding]:
    places = source.tree.once(("places", source.package), lambda: _places(source))
    own = [name for name, path in places.items() if path == module.path]
    others = (
        name
        for name, path in places.items()
        if path != module.path and source.tree.is_file(path) and builds_on(source.tree.read(path), module)
    )
    for name in itertools.chain(own, others) if own else ():
        binding = target_class(source, name)
        if binding is not None:
            yield binding


def _places(source: EngineSource) -> dict[str, Path]:
    """The file of each target, by its architecture's name."""
    return {name: _path(source, of) for name, (of, _) in module_rows(source).items()}


def _path(source: EngineSource, module: str) -> Path:
    path = source.package.parent.joinpath(*module.split("."))
    return path / "__init__.py" if source.tree.is_dir(path) else path.with_suffix(".py")


def hands_first(machine: Machine, target: Instance) -> tuple[Any, Any] | None:
    assert target.cls is not None
    if find_method(machine, target.cls, _OTHER_STATE) is not None:
        return None
    state = Tensor.of(Input("the target's state"))
    return state, _read_by_head(machine, target, state)


def hands_on(machine: Machine, source: EngineSource, draft: Instance) -> tuple[Any, Any] | None:
    assert draft.cls is not None
    forward = get_attribute(machine, draft, "forward")
    if find_method(machine, draft.cls, _COMBINES) is not None or not isinstance(forward, BoundMethod):
        return None
    arguments = {
        "input_ids": token_indices(machine, "input_ids"),
        "positions": token_indices(machine, "positions"),
        "hidden_states": Tensor.of(Input("the state that is handed over")),
        "inputs_embeds": None,
    }
    returned = call_value(machine, forward, (), arguments, None)
    if not isinstance(returned, tuple):
        state = whole(returned)
        if isinstance(state, Tensor) and isinstance(state.single(), Branch):
            return None  # what a module that is not followed returns may be a pair
        return state, _read_by_head(machine, draft, state)
    kept = _kept(source) if len(returned) == 2 else None
    return None if kept is None else (returned[kept], _read_by_head(machine, draft, returned[1 - kept]))


def _read_by_head(machine: Machine, model: Instance, state: Any) -> Any:
    """What the logits processor is given where the model makes logits of a state."""
    read: dict[str, Any] = {}  # kept through the heap, so that it belongs to the path that is taken

    def logits(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        m.heap.set(read, "state", kwargs.get("hidden_states", args[1] if len(args) > 1 else None))
        return Unknown("logits", present=True)

    machine.intercepts["LogitsProcessor.__call__"] = logits
    method = get_attribute(machine, model, "compute_logits")
    if isinstance(method, BoundMethod) and isinstance(whole(state), Tensor):
        call_value(machine, method, (state,), {}, None)
    return read.get("state")


def _kept(source: EngineSource) -> int | None:
    """Which one of a pair that a draft returns the proposers keep for its next step; None where they differ."""
    directory = source.package / "v1" / "spec_decode"
    found: set[int] = set()
    for path in source.tree.files(directory) if source.tree.is_dir(directory) else ():
        module = source.tree.module_at(path) if f"{_BUFFER}[".encode() in source.tree.read(path) else None
        if module is not None:
            found.update(_kept_in(module))
    return next(iter(found)) if len(found) == 1 else None


def _kept_in(module: SourceModule) -> Iterator[int]:
    for cls in module.index.classes.values():
        for info in cls.methods.values():
            if f"{_BUFFER}[" not in module.text(info.line, info.end_line):
                continue
            piece = module.slice(info.line, info.end_line)
            assignments = [node for node in walk(piece.body[0]) if isinstance(node, cst.Assign)]
            stored = {
                _root(node.value)
                for node in assignments
                if isinstance(node.targets[0].target, cst.Subscript)
                and piece.code(node.targets[0].target.value) == _BUFFER
            }
            for node in assignments:
                match node.targets[0].target:
                    case cst.Tuple(
                        elements=[
                            cst.Element(value=cst.Name(value=first)),
                            cst.Element(value=cst.Name(value=second)),
                        ]
                    ) if (first in stored) != (second in stored):
                        yield int(second in stored)


def _root(node: cst.BaseExpression) -> str | None:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None
