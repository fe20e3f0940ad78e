"""SafeAILab EAGLE-3: where its wiring begins. Read at commit cb7e084 (2026-02); the rest is derived from the source.

The layers are written into the copy of the target that it trains with; no config names them.
"""

from __future__ import annotations

from pathlib import Path

from eaglelint.source.lookup import get_attribute, opaque_layers
from eaglelint.source.values import External, Partial, Tensor, Unknown
from eaglelint.trainers.base import Captured, Export, Fed, HandOver, RecipeKeys, Run, Step, step
from eaglelint.trainers.bench import Bench, NotFollowed, given, order_in
from eaglelint.trainers.tokens import make_row, row_shift

__all__ = ["Eagle"]

_TARGET = "modeling_llama_kv.py"
_DRAFT = "cnets.py"


class Eagle:
    """The stack's entry points, by name: the target's forward pass, and what prepares its states for the draft."""

    name = "eagle"
    kinds: tuple[str, ...] = ("eagle3",)
    recipe = RecipeKeys()

    def find_package(self, path: Path) -> Path | None:
        for candidate in (path, path / "traineagle3", path / "eagle" / "traineagle3"):
            if (candidate / _DRAFT).is_file() and (candidate / _TARGET).is_file():
                return candidate
        return None

    def ways(self, bench: Bench, kind: str) -> tuple[str, ...]:
        return ("online",)

    def layer_ids(self, bench: Bench, run: Run) -> tuple[tuple[int, ...], Step]:
        """None: the forward pass compares the layers' indices with numbers of its own."""
        return (), step(bench.function(_TARGET, "LlamaModel.forward"), "holds the layers, no ids")

    def capture(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Captured | HandOver:
        forward = bench.function(_TARGET, "LlamaModel.forward")
        machine = bench.machine
        config = bench.section("the target's config", {"use_return_dict": True, "output_attentions": False})
        config.attrs["output_hidden_states"] = False
        layers = opaque_layers(machine)
        model = bench.instance(bench.cls(_TARGET, "LlamaModel"), layers=layers, config=config)
        model.attrs.update(norm=bench.instance(None, "RMSNorm"), gradient_checkpointing=False, training=False)
        machine.intercepts["_prepare_decoder_attention_mask()"] = lambda m, args, kwargs, site: Unknown("a mask")
        out = bench.call(
            forward,
            receiver=model,
            input_ids=Unknown("ids", present=True),
            use_cache=False,
            output_attentions=False,
            output_hidden_states=False,
            return_dict=True,
        )
        states, last = (get_attribute(machine, out, name) for name in ("hidden_states", "last_hidden_state"))
        if not isinstance(states, tuple | list) or not all(isinstance(state, Tensor) for state in states):
            raise NotFollowed(f"{forward.module.display}:{forward.info.line}: what is captured is not known")
        return Captured(
            tuple(bench.slot(state) for state in states),
            bench.slot(last) if isinstance(last, Tensor) else None,
            (bench.line(_TARGET, "if idx==len(self.layers)", "captures before these layers"),),
            tuple(sorted(machine.used_assumptions)),
        )

    def feed(self, bench: Bench, rows: Bench, run: Run, count: int) -> Fed:
        prepare = bench.function(_DRAFT, "Model.dataprepare")
        states = tuple(given(f"state {index}") for index in range(count))
        output = bench.instance(None, "the target's output", hidden_states=states, logits=given("label"))
        joined = bench.assigned(prepare, "hidden_states", bench.instance(None, "the draft"), outs=output)
        for index, state in enumerate(states):
            if f"hidden_states{index}" in prepare.module.text(prepare.info.line, prepare.info.end_line):
                continue
            raise NotFollowed(
                f"{prepare.module.display}:{prepare.info.line}: what becomes of state {state} is not known"
            )
        order, normed = order_in(joined, prepare)
        moving = rows.function(_DRAFT, "Model.dataprepare")
        rows.machine.intercepts["bench.target"] = lambda machine, args, kwargs, site: rows.instance(
            None, "the target's output", hidden_states=(make_row(), make_row(), make_row()), logits=make_row()
        )
        draft = rows.instance(None, "the draft", target_model=Partial(External("bench.target"), (), {}))
        moved = rows.call(moving, make_row(), Unknown("mask"), make_row(), receiver=draft)
        shifts: tuple[tuple[str, int], ...] = ()
        if isinstance(moved, tuple) and len(moved) == 4:
            named = (("target", moved[1]), ("loss_mask", moved[2]), ("input_ids", moved[3]))
            shifts = tuple((key, shift) for key, value in named if (shift := row_shift(value)) is not None)
        return Fed(order, normed, True, False, shifts, (step(prepare, "joins the states, moves ids and the label"),))

    def export(self, bench: Bench, run: Run, ids: tuple[int, ...]) -> Export:
        saving = bench.line("main.py", "save_16bit_model", "saves weights alone")
        return Export(dict(run.draft), "no config is written: the user's own, which holds no ids", (saving,))
