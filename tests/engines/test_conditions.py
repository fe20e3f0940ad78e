"""What an answer is when the code branches on something unknown, stops with an error, or uses a summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eaglelint.derive import Deriver, ServingRequest, derive_serving
from eaglelint.source.machine import Budget
from eaglelint.source.stubs import Stub, load_stubs
from eaglelint.wiring import Slot
from tests.engines.mini import BEFORE, Model, derive, handle, write_engine
from tests.engines.test_idioms import STATE, captures, loop

FLAG = """
def overlapping():
    import os
    return len(os.environ) > 0
"""


def slots(*names: str) -> tuple[Slot, ...]:
    return tuple(Slot("unknown") if name == "?" else _slot(name) for name in names)


def _slot(name: str) -> Slot:
    form, _, rest = name.partition("(") if "(" in name else ("stream", "", name)
    return Slot(form, int(rest.strip("h[])")))  # type: ignore[arg-type]


CONDITIONAL = {
    "in the loop": (
        captures(f"aux.append(hidden_states if overlapping() else {STATE})"),
        "when overlapping()",
        ("partial(h[2])", "partial(h[6])", "partial(h[9])"),
    ),
    "in a helper": (
        captures("self.capture(aux, hidden_states, residual)"),
        "when overlapping()",
        ("partial(h[2])", "partial(h[6])", "partial(h[9])"),
    ),
    "around the capture": (
        captures(f"if overlapping(): continue_without = True\n        else: aux.append({STATE})"),
        "when overlapping()",
        (),
    ),
}


@pytest.mark.parametrize("name", CONDITIONAL)
def test_an_unknown_condition_that_changes_the_wiring(tmp_path: Path, name: str) -> None:
    """The usual wiring is shown first, the other one with the condition as it is written."""
    body, text, others = CONDITIONAL[name]
    model = Model(
        top=FLAG,
        loop=body,
        methods="""
def capture(self, aux, hidden_states, residual):
    if overlapping():
        aux.append(hidden_states)
    else:
        aux.append(hidden_states + residual)
""",
    )
    wiring = derive(tmp_path, model)
    assert (wiring.status, str(wiring)) == ("conditional", "h[2] ⊕ h[6] ⊕ h[9]")
    assert [(condition.text, condition.slots) for condition in wiring.conditions] == [(text, slots(*others))]


@pytest.mark.parametrize(
    ("setter", "others"),
    [
        ("self.model.layers_to_capture = [2, 5]\nif overlapping():\n    self.model.layers_to_capture = [3, 6]", (3, 6)),
        ("self.model.layers_to_capture = [2, 5]\nif overlapping():\n    self.model.layers_to_capture[0] = 3", (3, 5)),
        ("shift = 1 if overlapping() else 0\nself.model.layers_to_capture = [2 + shift, 5]", (3, 5)),
        ("shift = overlapping()\nself.model.layers_to_capture = [3 if shift else 2, 5]", (3, 5)),
        ("for i in (2, 5):\n    self.model.layers_to_capture.append(i + 1 if overlapping() else i)", (3, 6)),
    ],
)
def test_a_setter_that_depends_on_something_unknown(tmp_path: Path, setter: str, others: tuple[int, ...]) -> None:
    """Whatever it changes, and however it does that: both wirings are shown."""
    wiring = derive(tmp_path, Model(top=FLAG, setter=setter))
    assert (wiring.status, str(wiring)) == ("conditional", "h[2] ⊕ h[5]")
    assert [condition.slots for condition in wiring.conditions] == [tuple(Slot("stream", k) for k in others)]


def test_one_condition_is_decided_once(tmp_path: Path) -> None:
    """A condition that stands in two places does not give four wirings."""
    body = f"""
for i, layer in enumerate(self.layers):
    if self.flag:
        if i in self.layers_to_capture:
            aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
    if not self.flag:
        if i in self.layers_to_capture:
            aux.append(hidden_states + residual)
"""
    wiring = derive(tmp_path, Model(init="self.flag = config.flag", loop=loop(body)))
    assert {str(wiring), *(" ⊕ ".join(map(str, c.slots or ())) for c in wiring.conditions)} == {
        "h[2] ⊕ h[6] ⊕ h[9]",
        "h[3] ⊕ h[7] ⊕ h[10]",
    }
    assert wiring.status == "conditional"


@pytest.mark.parametrize(
    "body",
    [
        captures(f"scale = 2 if overlapping() else 3\n        aux.append({STATE})"),
        captures(f"if overlapping(): print('overlapping')\n        aux.append({STATE})"),
        captures(f"aux.append({STATE} if overlapping() else ({STATE}))"),
        captures(f"if overlapping(): raise RuntimeError\n        aux.append({STATE})"),
    ],
)
def test_a_condition_that_changes_nothing(tmp_path: Path, body: str) -> None:
    """The answer is exact where all paths wire the same; a path that stops serves nothing."""
    wiring = derive(tmp_path, Model(top=FLAG, loop=body))
    assert (wiring.status, str(wiring), wiring.conditions) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]", ())


def test_assumptions_are_named(tmp_path: Path) -> None:
    """What is taken for granted about the deployment is part of the answer."""
    model = Model(
        top="from sglang.distributed import get_tensor_model_parallel_world_size",
        loop=captures(f"aux.append(({STATE}) if get_tensor_model_parallel_world_size() == 1 else hidden_states)"),
    )
    wiring = derive(tmp_path, model)
    assert (wiring.status, str(wiring), wiring.assumptions) == (
        "exact",
        "h[2] ⊕ h[6] ⊕ h[9]",
        (
            "one pipeline stage (pp=1)",
            "no two-batch overlap (tbo=off)",
            "eager execution",
            "one device (tp=1)",
            "states are stored in the mode FULL (capture-mode=full)",
        ),
    )


# --- faults --------------------------------------------------------------------------------------------------------


def test_none_is_added_to_a_state(tmp_path: Path) -> None:
    """Before the first layer there is no residual: the line and the operand are named."""
    wiring = derive(tmp_path, Model(loop=captures("aux.append(hidden_states + residual)")), (-1, 2))
    (fault,) = wiring.faults
    assert (wiring.status, str(wiring)) == ("unknown", "? ⊕ h[3]")
    assert fault.message == "the right operand of hidden_states + residual is None"
    assert "hidden_states + residual" in (tmp_path / fault.path).read_text("utf-8").split("\n")[fault.line - 1]


def test_a_setter_that_indexes_past_the_end(tmp_path: Path) -> None:
    """The engine would stop; the answer is unknown, with the error and its line."""
    setter = "for i in layer_ids or [2]:\n    self.model.layers[i + 1].captures = True"
    wiring = derive(tmp_path, Model(setter=setter), (2, 11))
    (fault,) = wiring.faults
    assert wiring.status == "unknown" and not wiring.slots
    assert fault.message.startswith("IndexError") and fault.line > 1
    assert wiring.reason is not None and "it would stop with IndexError at sglang/srt/models/llama.py:" in wiring.reason


def test_a_class_without_a_setter(tmp_path: Path) -> None:
    """A draft of a kind that this target cannot serve: the missing setter is named."""
    wiring = derive(tmp_path, Model(), kind="dflash")
    assert wiring.status == "unknown"
    assert wiring.faults[0].message == "NoSetter: LlamaForCausalLM has no set_dflash_layers_to_capture"


def test_the_last_boundary_is_not_reached(tmp_path: Path) -> None:
    """A loop that captures before each layer never sees h[N]: fewer states than ids."""
    wiring = derive(tmp_path, Model(), (1, 5, 11))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6]")


@pytest.mark.parametrize("num_layers", [1, 2, 3, 40])
def test_any_depth(tmp_path: Path, num_layers: int) -> None:
    """Defaults of a shallow target fall together; what is left is still what the code captures."""
    wiring = derive(tmp_path, Model(), num_layers=num_layers)
    ids = sorted({2, num_layers // 2, num_layers - 3} & set(range(num_layers)))
    assert [slot.boundary for slot in wiring.slots] == ids
    assert wiring.status == ("exact" if ids else "unknown")


def test_a_budget(tmp_path: Path) -> None:
    """Code that takes too long gives an unknown answer that says so, not a partial one."""
    wiring = derive(tmp_path, Model(), budget=Budget(steps=40))
    assert (wiring.status, wiring.slots) == ("unknown", ())
    assert wiring.reason is not None and "the interpretation stopped: more than 40 steps" in wiring.reason


@pytest.mark.parametrize(
    "setter",
    [
        "while True:\n    pass",
        "self.set_eagle3_layers_to_capture(layer_ids)",
        "self.model.layers_to_capture = [i for i in range(10**9)]",
        "self.model.layers_to_capture = [10 ** 10 ** 10]",
        "self.model.layers_to_capture = [2] * 10**12",
        "x = []\nx.append(x)\nself.model.layers_to_capture = x",
        "self.model.layers_to_capture = self.model.layers_to_capture_that_nobody_sets",
    ],
)
def test_hostile_setters_end(tmp_path: Path, setter: str) -> None:
    """No endless loop, no endless recursion, no giant list; never exact."""
    assert derive(tmp_path, Model(setter=setter)).status != "exact"


# --- summaries -----------------------------------------------------------------------------------------------------


HELPER = """
def low_level(state):
    return state.clone()
"""


def summarised(monkeypatch: pytest.MonkeyPatch, root: Path, fingerprint: str) -> Model:
    """A model whose helper has a summary: it hands on what it is given."""
    from eaglelint import derive as derivation
    from eaglelint.source.slices import parse_slice

    piece = parse_slice("summary", ["def low_level(state):\n", "    return state\n"], 1, 2)
    module, name = "sglang.srt.models.helper", "low_level"
    stub = Stub(name, module, name, "sglang 0.5.9", 1, {f"{module}:{name}": fingerprint}, piece, piece.body[0])  # type: ignore[arg-type]
    monkeypatch.setattr(derivation, "load_stubs", lambda package: {(module, name): stub})
    return Model(
        top="from sglang.srt.models.helper import low_level",
        extra={"srt/models/helper.py": HELPER},
        loop=captures(f"aux.append(low_level({STATE}))"),
    )


def test_a_summary_that_was_read_in_this_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used as if it were the code, and counted."""
    from eaglelint.source.stubs import fingerprint

    wiring = derive(tmp_path, summarised(monkeypatch, tmp_path, fingerprint(HELPER)))
    assert (wiring.status, str(wiring), wiring.summaries) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]", 1)


def test_a_summary_of_other_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slots are shown, and that the summary is not verified for this source."""
    wiring = derive(tmp_path, summarised(monkeypatch, tmp_path, "0" * 16))
    assert (wiring.status, str(wiring)) == ("conditional", "h[2] ⊕ h[6] ⊕ h[9]")
    (condition,) = wiring.conditions
    assert condition.text.startswith("summary of low_level not verified for this source")


def test_bundled_summaries_can_be_read() -> None:
    """Each says the release and line where it was read, and what it covers."""
    for stub in load_stubs("sglang").values():
        assert stub.release.startswith("sglang ") and stub.line > 0 and stub.covers, stub.name
    assert load_stubs("no-such-engine") == {}


# --- what the draft's config says ----------------------------------------------------------------------------------


def test_a_draft_that_asks_for_no_states(tmp_path: Path) -> None:
    """The engine captures nothing, and the answer says that it is so for this config."""
    draft = {"eagle_config": {"use_aux_hidden_state": False, "eagle_aux_hidden_state_layer_ids": [1, 2, 3]}}
    wiring = derive(tmp_path, Model(), draft=draft)
    assert (wiring.status, wiring.slots) == ("unknown", ())
    assert wiring.reason == "the engine captures no auxiliary states for this config"


def test_where_the_ids_were_found(tmp_path: Path) -> None:
    """The key path that the runner reads is derived with the wiring."""
    draft = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5]}, "eagle_aux_hidden_state_layer_ids": [7]}
    wiring = derive(tmp_path, Model(), draft=draft)
    assert (wiring.ids_from, wiring.layer_ids) == (("eagle_config", "eagle_aux_hidden_state_layer_ids"), (1, 5))


def test_target_classes(tmp_path: Path) -> None:
    """All entry classes with a setter of their own or inherited; drafts are no targets."""
    draft = "from sglang.srt.models.llama import LlamaForCausalLM\n\nclass LlamaForCausalLMEagle3(LlamaForCausalLM):\n    pass\n\nEntryClass = [LlamaForCausalLMEagle3]\n"
    child = draft.replace("LlamaForCausalLMEagle3", "MistralForCausalLM")
    model = Model(extra={"srt/models/eagle.py": draft, "srt/models/mistral.py": child})
    found = handle(write_engine(tmp_path, model))
    names = [binding.item.name for binding in found.engine.target_classes(found.source)]  # type: ignore[union-attr]
    assert sorted(names) == ["LlamaForCausalLM", "MistralForCausalLM"]


def test_a_model_that_does_not_parse(tmp_path: Path) -> None:
    """The file is named, and other classes are still there."""
    write_engine(tmp_path, replace(Model(), extra={"srt/models/broken.py": "class Broken(:\nEntryClass = Broken\n"}))
    found = handle(tmp_path)
    assert [b.item.name for b in found.engine.target_classes(found.source)] == ["LlamaForCausalLM"]  # type: ignore[union-attr]
    assert list(found.source.tree.unreadable) == ["sglang/srt/models/broken.py"]
    assert "broken.py:1: invalid syntax" in found.source.tree.unreadable["sglang/srt/models/broken.py"]


def test_a_setter_in_a_base_class_of_another_file(tmp_path: Path) -> None:
    """Inherited methods are found across files, overridden ones where they are."""
    child = """
from sglang.srt.models.llama import LlamaForCausalLM

class ChildForCausalLM(LlamaForCausalLM):
    def set_eagle3_layers_to_capture(self, layer_ids=None):
        super().set_eagle3_layers_to_capture([i + 1 for i in layer_ids])

EntryClass = ChildForCausalLM
"""
    model = Model(loop=BEFORE, extra={"srt/models/child.py": child})
    assert str(derive(tmp_path, model, (1, 2), name="ChildForCausalLM")) == "h[3] ⊕ h[4]"


SHIFTED = {
    "read twice": ("self.config.shifted", "self.model.config.shifted"),
    "in other words": ("not self.config.plan.shift == 1", "self.model.config.plan.shift != 1"),
    "through an attribute": ("self.shifted", "bool(1) and self.model.shifted"),
    "with a default": ("getattr(self.config, 'shifted', False)", "getattr(self.model.config, 'shifted', False)"),
    "or another value": ("(self.config.shift or 0) > 0", "(self.model.config.shift or 0) > 0"),
}


def moving(test: str) -> str:
    """A loop that captures one layer later where the test holds."""
    return loop(f"""
for i, layer in enumerate(self.layers):
    place = i
    if {test}:
        place = i - 1
    if place in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")


@pytest.mark.parametrize("name", SHIFTED)
def test_a_key_of_the_config_is_one_condition_wherever_it_is_tested(tmp_path: Path, name: str) -> None:
    """The setter subtracts what the loop adds: whatever the config says, the states are the same."""
    in_loop, in_setter = SHIFTED[name]
    model = Model(
        init="self.shifted = config.shifted",
        setter=f"self.model.layers_to_capture = [i - 1 if {in_setter} else i for i in layer_ids]",
        loop=moving(in_loop),
    )
    wiring = derive(tmp_path, model, (2, 6, 9))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]"), wiring.conditions


NOT_ONE = {
    "two keys": ("self.config.shifted", "self.model.config.moved"),
    "two defaults": ("getattr(self.config, 'shifted', False)", "getattr(self.model.config, 'shifted', True)"),
    "two thresholds": ("self.config.shift > 0", "self.model.config.shift > 1"),
    "of two sections": ("self.config.text_config.shifted", "self.model.config.vision_config.shifted"),
    "changed in between": ("self.config.shifted", "self.model.config.shifted or setattr(self.config, 'shifted', 1)"),
    "either of two": (
        "(self.config.shifted if self.config.first else self.config.moved)",
        "(self.model.config.shifted if self.model.config.second else self.model.config.moved)",
    ),
}


@pytest.mark.parametrize("name", NOT_ONE)
def test_other_keys_are_other_conditions(tmp_path: Path, name: str) -> None:
    """What may differ is never taken to be the same."""
    in_loop, in_setter = NOT_ONE[name]
    model = Model(
        setter=f"self.model.layers_to_capture = [i - 1 if {in_setter} else i for i in layer_ids]",
        loop=moving(in_loop),
    )
    found = handle(write_engine(tmp_path, model))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    target = {"num_hidden_layers": 12, "text_config": {"num_hidden_layers": 12}, "vision_config": {}}
    request = ServingRequest(binding, 12, target, layer_ids=(2, 6, 9))
    assert derive_serving(found.engine, found.source, request).status != "exact"


HANDED_ON = {
    "the states": (Model(), False),
    "pooled, without them": (
        Model(loop=BEFORE.replace("return hidden_states, aux", "return hidden_states, None")),
        True,
    ),
    "without them on the first path": (
        Model(
            top=FLAG,
            loop=BEFORE.replace("return hidden_states, aux", "return hidden_states, aux if overlapping() else None"),
        ),
        False,
    ),
    "without them on the second path": (
        Model(
            top=FLAG,
            loop=BEFORE.replace("return hidden_states, aux", "return hidden_states, None if overlapping() else aux"),
        ),
        False,
    ),
    "none for these ids": (Model(setter="self.model.layers_to_capture = [99]"), True),
    "an assertion": (Model(setter="assert not layer_ids, 'no capture here'\nself.model.layers_to_capture = []"), True),
    "another error": (Model(setter="raise ValueError('a key is missing')"), False),
    "what is not followed": (Model(loop="import os\nreturn os.pipe(input_ids)"), False),
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_that_no_state_is_handed_on_is_certain_or_not(tmp_path: Path, name: str) -> None:
    """Where all layers ran and nothing came of it, or the code itself refuses; not where the run was lost."""
    model, nothing = HANDED_ON[name]
    found = handle(write_engine(tmp_path, model))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    request = ServingRequest(binding, 12, {"num_hidden_layers": 12}, layer_ids=(1, 5, 8))
    assert Deriver(found.engine, found.source, 12).derive(request).hands_nothing_on is nothing
