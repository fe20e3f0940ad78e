"""SGLang's workers for EAGLE-3: a prefill of theirs is run, with a stand-in for the target's worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eaglelint.engines.base import EngineSource, enum_member, stand_in
from eaglelint.engines.workers import DraftPrefill, Request
from eaglelint.source.calls import call_value
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import MISSING, find_method
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.values import BoundMethod, ClassValue, External, Function, Instance, Partial, Unknown

__all__ = ["EMBEDDINGS", "algorithm", "draft_prefills", "extend", "requests"]

EMBEDDINGS = "mm_input_embeds"  # in the logits processor's output and in ForwardBatch, 0.5.9 to 0.5.23
_WORKERS = ("EAGLEWorker", "EAGLEWorkerV2")  # srt/speculative/eagle_worker.py, eagle_worker_v2.py
_RUN = "forward_batch_generation"
_TARGET = "the target's worker.forward_batch_generation"


class _Known(Exception):
    """What is asked of a worker is known: what else it does, and its other paths, do not matter."""


def algorithm(machine: Machine, source: EngineSource) -> Any:
    return enum_member(machine, source, (source.package / "srt" / "speculative",), "SpeculativeAlgorithm", "EAGLE3")


def extend(machine: Machine, source: EngineSource) -> Any:
    """``ForwardMode.EXTEND``, the mode of a prefill."""
    member = enum_member(machine, source, (source.package / "srt" / "model_executor",), "ForwardMode", "EXTEND")
    return Unknown("the mode of the batch", present=True) if member is None else member


def requests(machine: Machine, source: EngineSource) -> Iterator[Request]:
    """The mode of keeping states in which each worker has the target run a prefill."""
    for cls, method in _workers(machine, source):
        yield from _requests(machine, source, cls, method)


def _requests(machine: Machine, source: EngineSource, cls: ClassValue, method: Function) -> list[Request]:
    """The first one: that is the prefill, and what follows has its answer."""
    found: list[Request] = []

    def run_target(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        given = args[0] if args else None
        mode = kwargs.get("capture_hidden_mode")
        if mode is None and isinstance(given, Instance):
            mode = given.attrs.get("capture_hidden_mode")
        if site is not None:
            found.append(Request(cls.info.name, mode, site))
            raise _Known
        return Unknown("the target's answer", present=True)

    _run(machine, source, cls, method, run_target)
    return found


def draft_prefills(machine: Machine, source: EngineSource) -> Iterator[DraftPrefill]:
    """How each worker runs the draft on a prompt after the target, whose answer holds embeddings of images."""
    batch = source.tree.find_class("ForwardBatch", (source.package / "srt" / "model_executor",))
    made = batch.item.methods.get("init_new") if batch is not None and isinstance(batch.item, ClassInfo) else None
    if batch is None or made is None or EMBEDDINGS in batch.module.text(made.line, made.end_line):
        return  # a batch that finds them by itself
    for cls, method in _workers(machine, source):
        yield from _draft_prefills(machine, source, cls, method)


def _draft_prefills(machine: Machine, source: EngineSource, cls: ClassValue, method: Function) -> list[DraftPrefill]:
    images = Unknown("embeddings of images", present=True)
    batches: list[Instance] = []
    found: list[DraftPrefill] = []

    def run_target(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        logits = stand_in(m, "logits_output", **{EMBEDDINGS: images})
        return stand_in(m, "batch_result", logits_output=logits)

    def make_batch(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        batches.append(stand_in(m, "forward_batch", **{EMBEDDINGS: None}))
        return batches[-1]

    def run_draft(m: Machine, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        given = next((one for one in (*args, *kwargs.values()) if any(one is batch for batch in batches)), None)
        if given is None or site is None:
            return Unknown("what a model gives", present=True)
        found.append(DraftPrefill(cls.info.name, (*m.calls, site)[0], site, given.attrs[EMBEDDINGS] is not None))
        if found[-1].handed:
            raise _Known
        raise Raised("Seen", "the draft is run", site)

    def outside(callee: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> Any:
        if name.rsplit(".", 1)[-1] == "forward":
            return run_draft(machine, args, kwargs, site)
        given = (*args, *kwargs.values())
        if any(one is images for one in given) and any(one is batch for one in given for batch in batches):
            raise _Known  # what cannot be followed may set them
        return MISSING

    machine.intercepts |= {"init_new()": make_batch, "ModelRunner.forward": run_draft}
    machine.outside_call = outside
    _run(machine, source, cls, method, run_target)
    return found


def _workers(machine: Machine, source: EngineSource) -> Iterator[tuple[ClassValue, Function]]:
    for name in _WORKERS:
        worker = source.tree.find_class(name, (source.package / "srt" / "speculative",))
        if worker is not None and isinstance(worker.item, ClassInfo):
            cls = ClassValue(worker.module, worker.item)
            method = find_method(machine, cls, _RUN)
            if method is not None:
                yield cls, method


def _run(
    machine: Machine, source: EngineSource, cls: ClassValue, method: Function, run_target: Callable[..., Any]
) -> None:
    """Every path of a worker's prefill, until what is asked is known; ``run_target`` answers in the target's place."""

    def run() -> None:
        batch = stand_in(machine, "batch", forward_mode=extend(machine, source))
        batch.attrs["get_model_worker_batch"] = Partial(External("intrinsic.given"), (batch,), {})
        target = stand_in(machine, "target_worker", **{_RUN: External(_TARGET)})
        known = {"speculative_algorithm": algorithm(machine, source)}
        known |= {"target_worker": target, "_target_worker": target}
        worker = machine.new_instance(Instance(cls, attrs=known, name=cls.info.name))
        call_value(machine, BoundMethod(method, worker), (batch,), {}, None)

    machine.begin()
    machine.intercepts[_TARGET] = run_target
    for flags in ("get_forward()", "get_flags()"):
        machine.intercepts[flags] = lambda m, args, kwargs, site: stand_in(m, "flags")
    mark = machine.heap.mark()
    try:
        machine.explore(run, None)
    except _Known:
        machine.heap.rollback(mark)
