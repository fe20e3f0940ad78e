"""Whether released engines capture Qwen3-VL's states with the features of images, against a reading of their code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eaglelint.artifacts.target import TargetConfig
from eaglelint.derive import Deriver, ServingRequest
from eaglelint.serving import EngineHandle
from eaglelint.source.machine import Budget
from eaglelint.source.tree import Binding
from eaglelint.survey.classes import survey_classes
from eaglelint.survey.injected import compared, injected_late

pytestmark = pytest.mark.real

DENSE, SPARSE, OMNI = (
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3OmniMoeThinkerForConditionalGeneration",
)


def bound(handle: EngineHandle, name: str) -> Binding:
    found = handle.engine.target_class(handle.source, name)
    assert found is not None
    return found


@pytest.mark.parametrize(("cls", "file", "line"), [(DENSE, "qwen3_vl", 1023), (SPARSE, "qwen3_vl_moe", 103)])
def test_sglang_0_5_12_captures_before_it_adds(
    cls: str, file: str, line: int, real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """h[1], h[2] and h[3], of which each layer is handed the rest as its post_residual_addition."""
    handle = real_engine("sglang", "0.5.12")
    (facts,) = survey_classes(handle.engine, handle.source, [bound(handle, cls)])
    assert facts.default is not None
    (case,) = facts.default.injected_late
    assert (case.boundaries, case.name, case.counted) == ((1, 2, 3), "input_deepstack_embeds", None)
    assert str(case.capture) == f"sglang/srt/models/{file}.py:{line}"
    assert case.taken.code == "input_deepstack_embeds[:, sep : sep + self.hidden_size]"


@pytest.mark.parametrize(
    ("engine", "version", "cls"),
    [
        ("vllm", "0.13.0", DENSE),
        ("vllm", "0.33.0", DENSE),
        ("vllm", "0.33.0", SPARSE),
        ("vllm", "0.33.0", OMNI),
    ],
)
def test_releases_that_capture_the_sum(
    engine: str, version: str, cls: str, real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """All states are compared, some of them hold features, and none lacks any."""
    handle = real_engine(engine, version)
    request = ServingRequest(bound(handle, cls), 8, TargetConfig.synthetic(8).data, layer_ids=(1, 2, 3, 4))
    deriver = Deriver(handle.engine, handle.source, 8)
    deriver.derive(request)
    ((features, states),) = compared(handle.engine, handle.source, request, deriver.loops, Budget())
    assert [[state.boundary, len(state.held), state.lacking] for state in states] == [
        [1, 1, ()],
        [2, 2, ()],
        [3, 3, ()],
        [4, 3, ()],
    ]
    assert features.name == "deepstack_input_embeds"
    assert injected_late(handle.engine, handle.source, request, deriver.loops, Budget()) == ()


@pytest.mark.parametrize(("ids", "lacking"), [((1, 15, 31), [(2,)]), ((3, 17, 32), [])])
def test_only_states_that_the_draft_is_served_count(
    ids: tuple[int, ...], lacking: list[tuple[int, ...]], real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """SpecForge's default ids for 36 layers, and those that SpecForge#431 took in their place."""
    handle = real_engine("sglang", "0.5.12")
    target = TargetConfig.synthetic(36, (DENSE,))
    request = ServingRequest(bound(handle, DENSE), 36, target.data, layer_ids=ids)
    deriver = Deriver(handle.engine, handle.source, 36)
    assert deriver.derive(request).wiring.status == "exact"
    found = injected_late(handle.engine, handle.source, request, deriver.loops, Budget())
    assert [case.boundaries for case in found] == lacking


@pytest.mark.parametrize("cls", [DENSE, SPARSE])
@pytest.mark.parametrize(("first", "lacking"), [(1, [(2,)]), (3, [])])
def test_a_draft_for_a_published_kind_of_config(
    cls: str, first: int, lacking: list[tuple[int, ...]], real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """The sizes stand in the config of the language model, which the engine copies up; the features in the encoder's."""
    handle = real_engine("sglang", "0.5.12")
    sizes = {"num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 151936}
    text = {**sizes, **({"num_experts": 128} if cls == SPARSE else {})}
    target = {"text_config": text, "vision_config": {"deepstack_visual_indexes": [8, 16, 24], "hidden_size": 1152}}
    draft = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [first, 17, 32]}}
    run = handle.run(ServingRequest(bound(handle, cls), 36, target, draft_data=draft))
    assert str(run.wiring) == f"h[{first + 1}] ⊕ h[18] ⊕ h[33]"
    assert [case.boundaries for case in run.injected_late] == lacking
