"""z-lab DFlash: where its wiring begins. Read at commit 44947fb (2026-04); the rest is derived from the source.

The repository holds the model and its reference inference, no training code: what the released drafts were trained on
is what the reference feeds them.
"""

from __future__ import annotations

from pathlib import Path

from eaglelint.source.calls import model_output
from eaglelint.source.lookup import get_attribute
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench

__all__ = ["DFlash"]

_MODEL = "model.py"
_TUPLE = "hidden_states of a Hugging Face model: entry k is h[k], the last one is after the final norm"


class DFlash:
    """The stack's entry points, by name: what spaces the layers, and what picks their states."""

    name = "dflash"
    kinds: tuple[str, ...] = ("dflash",)
    recipe = RecipeKeys()

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "dflash"):
            file = candidate / _MODEL
            if file.is_file() and b"def extract_context_feature" in file.read_bytes():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        return ("reference",)

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        function = bench.function(_MODEL, "build_target_layer_ids")
        config = run.draft.get("dflash_config")
        named = config.get("target_layer_ids") if isinstance(config, dict) else None
        depth = run.draft.get("num_hidden_layers")
        ids = list(run.layer_ids) if run.layer_ids is not None else named
        if ids is None:
            ids = bench.call(function, run.num_layers, depth if isinstance(depth, int) else 5)
        return bench.ids(ids, function), step(function, "spaces the layers evenly")

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        pick = bench.function(_MODEL, "extract_context_feature")
        states = get_attribute(bench.machine, model_output(bench.machine), "hidden_states")
        joined = bench.call(pick, states, list(ids))
        slots = tuple(bench.slot(part) for part in bench.parts(joined))
        proviso = "if the draft was trained on what the reference inference feeds it: there is no training code"
        return Captured(slots, None, (step(pick, "picks from the target's hidden states"),), (_TUPLE,), (proviso,))

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        return Fed(tuple(range(count)), frozenset(), False, False, (), ())

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        place = bench.line(_MODEL, '"target_layer_ids"', "reads the ids from the config")
        section = dict(run.draft.get("dflash_config") or {}) if isinstance(run.draft.get("dflash_config"), dict) else {}
        config = {**run.draft, "dflash_config": {**section, "target_layer_ids": list(ids)}}
        return Export(config, "the config of the released drafts names the ids that the model reads", (place,))
