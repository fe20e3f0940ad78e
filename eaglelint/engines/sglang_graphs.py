"""SGLang's graphs for prefills of the target: who makes them, and for which server."""

from __future__ import annotations

from pathlib import Path

from eaglelint.engines.base import EngineSource, enum_member, stand_in
from eaglelint.engines.sglang_workers import algorithm, extend
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import get_attribute
from eaglelint.source.machine import Machine
from eaglelint.source.values import ClassValue, Instance

__all__ = ["GATES", "files", "modes", "options", "prefill", "target_runner"]

GATES = ("can_run", "can_run_graph")  # 0.5.5 to 0.5.13; 0.5.16 to 0.5.23
_MODES = "CaptureHiddenMode"
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
        "spec_algorithm": algorithm(machine, source),
        "is_draft_worker": False,
        "server_args": arguments,
    }
    return machine.new_instance(Instance(cls, attrs=known, name="model_runner"))


def prefill(machine: Machine, source: EngineSource, mode: Instance) -> Instance:
    """A batch of prefills that is to keep the states of these tokens."""
    return stand_in(machine, "forward_batch", forward_mode=extend(machine, source), capture_hidden_mode=mode)
