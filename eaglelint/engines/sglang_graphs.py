"""SGLang's graphs for prefills: who makes them for which server, and in which mode a prefill of the target runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eaglelint.engines.base import EngineSource, enum_member, stand_in
from eaglelint.engines.graphs import Request
from eaglelint.source.calls import call_value
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import find_method, get_attribute
from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import BoundMethod, ClassValue, External, Function, Instance, Partial, Unknown

__all__ = ["GATES", "files", "modes", "options", "prefill", "requests", "target_runner"]

GATES = ("can_run", "can_run_graph")  # 0.5.5 to 0.5.13; 0.5.16 to 0.5.23
_MODES = "CaptureHiddenMode"
_WORKERS = ("EAGLEWorker", "EAGLEWorkerV2")  # srt/speculative/eagle_worker.py, eagle_worker_v2.py
_RUN = "forward_batch_generation"
# Which server's graphs these are: one that gives no states to its users, which would have all of them recorded.
_RETURNS_NO_STATES = {"enable_return_hidden_states": False, "return_hidden_states_mode": None}


def files(source: EngineSource) -> list[Path]:
    return list(source.tree.files(source.package / "srt" / "model_executor"))


def modes(machine: Machine, source: EngineSource) -> dict[str, Instance]:
    """The members of ``CaptureHiddenMode``: which tokens' states a forward pass keeps."""
    directories = (source.package / "srt" / "model_executor",)
    found = source.tree.find_class(_MODES, directories)
    if found is None or not isinstance(found.item, ClassInfo):
        return {}
    members = {name: enum_member(machine, source, directories, _MODES, name) for name in found.item.assignments}
    return {name: member for name, member in members.items() if isinstance(member, Instance)}


def options(machine: Machine, source: EngineSource) -> tuple[str | None, ...]:
    """The back ends that record graphs for prefills, where the server names one; None where it does not."""
    found = source.tree.find_class("Backend", (source.package / "srt" / "model_executor",))
    if found is None or not isinstance(found.item, ClassInfo):
        return (None,)
    names = get_attribute(machine, ClassValue(found.module, found.item), "ALL")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, tuple | list) else (None,)


def requests(machine: Machine, source: EngineSource) -> Iterator[Request]:
    """The mode in which each worker for EAGLE-3 has the target run a prefill."""
    algorithm, extend = _algorithm(machine, source), _extend(machine, source)
    for name in _WORKERS:
        worker = source.tree.find_class(name, (source.package / "srt" / "speculative",))
        if worker is not None and isinstance(worker.item, ClassInfo):
            cls = ClassValue(worker.module, worker.item)
            method = find_method(machine, cls, _RUN)
            if method is not None:
                yield from _requests(machine, cls, method, algorithm, extend)


def _requests(machine: Machine, cls: ClassValue, method: Function, algorithm: Any, extend: Any) -> list[Request]:
    found: list[Request] = []

    def run_target(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        given = args[0] if args else None
        mode = kwargs.get("capture_hidden_mode")
        if mode is None and isinstance(given, Instance):
            mode = given.attrs.get("capture_hidden_mode")
        if site is not None:
            found.append(Request(cls.info.name, mode, site))
        return Unknown("the target's answer", present=True)

    def run() -> None:
        batch = stand_in(machine, "batch", forward_mode=extend)
        batch.attrs["get_model_worker_batch"] = Partial(External("intrinsic.given"), (batch,), {})
        target = stand_in(machine, "the target's worker", **{_RUN: External("target prefill")})
        known = {"target_worker": target, "_target_worker": target, "speculative_algorithm": algorithm}
        worker = machine.new_instance(Instance(cls, attrs=known, name=cls.info.name))
        call_value(machine, BoundMethod(method, worker), (batch,), {}, None)

    machine.intercepts["target prefill"] = run_target
    machine.explore(run, None)
    return found[:1]  # the first one is the prefill; what follows has its answer


def target_runner(machine: Machine, source: EngineSource, option: str | None, cls: ClassValue | None) -> Instance:
    """An EAGLE-3 target's model runner, of that class or a stand-in, on a server with that back end for prefills."""
    prefill = {} if option is None else {"backend": option}
    config = stand_in(machine, "graph config", prefill=stand_in(machine, "graph config of prefills", **prefill))
    arguments = stand_in(machine, "the server's arguments", cuda_graph_config=config, **_RETURNS_NO_STATES)
    published = stand_in(machine, "the server's configuration", graph=arguments, features=arguments)
    for entry in ("get_server_args()", "get_global_server_args()"):
        machine.intercepts[entry] = lambda m, args, kwargs, site: arguments
    machine.intercepts["get_exec()"] = lambda m, args, kwargs, site: published
    known = {
        "spec_algorithm": _algorithm(machine, source),
        "is_draft_worker": False,
        "server_args": arguments,
    }
    return machine.new_instance(Instance(cls, attrs=known, name="model_runner"))


def prefill(machine: Machine, source: EngineSource, mode: Instance) -> Instance:
    """A batch of prefills that is to keep the states of these tokens."""
    return stand_in(machine, "forward_batch", forward_mode=_extend(machine, source), capture_hidden_mode=mode)


def _algorithm(machine: Machine, source: EngineSource) -> Any:
    return enum_member(machine, source, (source.package / "srt" / "speculative",), "SpeculativeAlgorithm", "EAGLE3")


def _extend(machine: Machine, source: EngineSource) -> Any:
    """``ForwardMode.EXTEND``, the mode of a prefill."""
    member = enum_member(machine, source, (source.package / "srt" / "model_executor",), "ForwardMode", "EXTEND")
    return Unknown("the mode of the batch", present=True) if member is None else member
