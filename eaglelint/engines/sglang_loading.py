"""Where SGLang shares the target's modules with a draft: ``init_lm_head`` of the worker that drafts."""

from __future__ import annotations

from eaglelint.engines.base import EngineSource, enum_member, stand_in
from eaglelint.engines.loading import Trial
from eaglelint.source.calls import call_value
from eaglelint.source.index import ClassInfo
from eaglelint.source.lookup import find_method
from eaglelint.source.machine import Machine
from eaglelint.source.values import BoundMethod, ClassValue, Instance

__all__ = ["load_draft"]

# srt/speculative/eagle_worker_v2.py (0.5.5 to 0.5.23); the first version does the same in its __init__.
_WORKER, _SHARES = "EagleDraftWorker", "init_lm_head"
_ALGORITHMS = {"eagle": "EAGLE", "eagle3": "EAGLE3"}


def load_draft(machine: Machine, source: EngineSource, kind: str, trial: Trial) -> bool:
    """Share what the worker shares. What is loaded before, by names that the module itself has, is not followed."""
    directory = source.package / "srt" / "speculative"
    worker = source.tree.find_class(_WORKER, (directory,))
    if kind not in _ALGORITHMS or worker is None or not isinstance(worker.item, ClassInfo):
        return False
    cls = ClassValue(worker.module, worker.item)
    method = find_method(machine, cls, _SHARES)
    algorithm = enum_member(machine, source, (directory,), "SpeculativeAlgorithm", _ALGORITHMS[kind])
    if method is None or algorithm is None:
        return False
    trial.model.args = (trial.model.attrs["config"],)
    runner = stand_in(machine, "the target's runner", model=trial.target)
    known = {
        "speculative_algorithm": algorithm,
        "draft_runner": stand_in(machine, "the draft's runner", model=trial.model),
        "target_worker": stand_in(machine, "the target's worker", model_runner=runner),
        "hot_token_id": None,
    }
    instance = machine.new_instance(Instance(cls, attrs=known, name=_WORKER))
    call_value(machine, BoundMethod(method, instance), (), {}, None)
    return True
