"""One run: build the target in a world of stand-ins, hand it its ids, run it, and read back what it captured."""

from __future__ import annotations

import importlib
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from eaglelint.probe.wiring.building import install_building
from eaglelint.probe.wiring.facts import Server
from eaglelint.probe.wiring.imports import ScannedPackage
from eaglelint.probe.wiring.ranks import Ranks
from eaglelint.probe.wiring.read_back import Boundaries, NotOneStream
from eaglelint.probe.wiring.signatures import WIDTH, is_state
from eaglelint.probe.wiring.standin import StandIn
from eaglelint.probe.wiring.starts import STARTS, Start
from eaglelint.probe.wiring.task import Observation, Task
from eaglelint.probe.wiring.world import World

__all__ = ["observe"]


def observe(task: Task, ranks: Ranks | None = None) -> Observation:
    """Run one target class, twice: with norms that return their results, and with norms that add in place."""
    ranks = ranks or Ranks()
    Server.rank, Server.size = ranks.rank, ranks.size
    world = World(fused_in_place=False, ranks=ranks)
    world.install()
    start = STARTS[task.engine]()
    _quiet_torch()
    install_building()
    name = task.module.partition(".")[0]
    finder = ScannedPackage(Path(task.root), name, start.real, world.note, start.functions(task))
    sys.meta_path.insert(0, finder)
    try:
        first = _run(task, start, world)
        if first.error is not None:
            return first
        again = World(fused_in_place=True, ranks=ranks)
        again.install()
        second = _run(task, start, again)
    except RecursionError as error:
        return Observation(error=f"nested too deeply: {error}")
    return replace(first, fused=None if second.seen == first.seen else second.seen)


def _run(task: Task, start: Start, world: World) -> Observation:
    try:
        module = importlib.import_module(task.module)
        cls = getattr(module, task.cls, None)
        if isinstance(cls, StandIn) or cls is None:
            raise LookupError(f"the class could not be made: {_why(world, task)}")
        model = start.build(task, cls)
        _find_layers(world, model, task.num_layers)
        start.configure(task, model)
        with torch.no_grad(), world.mode():
            world.running = True
            captured, joined = start.forward(model, world)
            world.running = False
        layers = tuple(entry.index for entry in world.entries)
        boundaries = Boundaries(world, task.num_layers)
        seen = tuple(boundaries.read(part) for part in _parts(world, captured))
    except MemoryError:
        raise
    except NotOneStream as error:
        return _failed(world, str(error))
    except Exception as error:
        return _failed(world, _told(error, task))
    finally:
        world.running = False
    return Observation(
        seen, joined, layers, tuple(world.stood_in.items()), tuple(sorted(world.collectives)), None, None
    )


def _failed(world: World, error: str) -> Observation:
    layers = tuple(entry.index for entry in world.entries)
    return Observation(layers=layers, stood_in=tuple(world.stood_in.items()), error=error)


def _told(error: Exception, task: Task) -> str:
    """An exception in one sentence, with the last line of the scanned code that it passed."""
    root = Path(task.root)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(root):
            return f"{type(error).__name__} at {path.relative_to(root)}:{frame.lineno}: {error}"[:400]
    return f"{type(error).__name__}: {error}"[:400]


def _why(world: World, task: Task) -> str:
    return world.stood_in.get(f"{task.module}.{task.cls}", f"{task.module} has no {task.cls}")


def _find_layers(world: World, model: Any, num_layers: int) -> None:
    """The lists of as many modules as the target has decoder layers."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == num_layers]
    for group, layers in enumerate(lists):
        for index, layer in enumerate(layers):
            world.layer_of[id(layer)] = (group, index)


def _parts(world: World, captured: Any) -> list[Any]:
    """The captured states, one by one, of a list or of a tensor that joins them."""
    if isinstance(captured, StandIn):
        captured = world.state(captured) if captured.standin_made is not None else captured
    if captured is None:
        return []
    if isinstance(captured, tuple | list):
        return [part for item in captured for part in _parts(world, item)]
    if is_state(captured) and captured.shape[-1] % WIDTH == 0:
        return list(captured.split(WIDTH, dim=-1))
    return [captured]


def _quiet_torch() -> None:
    """No devices, no compilers: what torch does there is a stand-in."""
    torch.set_num_threads(1)
    for name in ("Stream", "Event", "stream", "current_stream", "current_device", "get_device_capability"):
        setattr(torch.cuda, name, StandIn(f"torch.cuda.{name}"))
    torch.compile = _undecorated
    torch.jit.script = _undecorated


def _undecorated(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    return function if function is not None else _undecorated
