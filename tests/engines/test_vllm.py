"""A small engine in vLLM's form: a mixin that captures by boundary ids, a resolver that looks in many places."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.serving import open_serving
from eaglelint.wiring import LayerIds, Wiring

ENGINE = Path(__file__).parents[1] / "rules/projects/mini-vllm/vllm"
FILES = {file.relative_to(ENGINE).as_posix(): file.read_text("utf-8") for file in ENGINE.rglob("*.py")}


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
    return tmp_path


def derive(
    root: Path,
    ids: LayerIds = "default",
    *,
    draft: dict[str, Any] | None = None,
    kind: str = "eagle3",
    name: str = "LlamaForCausalLM",
) -> Wiring:
    found = open_serving(f"vllm@{root}", root=root, display_root=root)
    binding = found.engine.target_class(found.source, name)
    assert binding is not None
    request = ServingRequest(binding, 32, {"num_hidden_layers": 32}, kind, draft, ids)
    return derive_serving(found.engine, found.source, request)


@pytest.mark.parametrize(
    ("ids", "slots"),
    [
        ("default", "h[2] ⊕ h[16] ⊕ h[29]"),
        ((28, 1, 15), "h[1] ⊕ h[15] ⊕ h[28]"),
        ((0, 32, 32), "h[0] ⊕ h[32]"),
        ((33, 5), "h[5]"),
    ],
)
def test_ids_are_boundaries_sorted_and_unique(engine: Path, ids: LayerIds, slots: str) -> None:
    """Boundary 0 and N included; an id past the end captures nothing."""
    wiring = derive(engine, ids)
    assert (wiring.status, str(wiring), wiring.engine_version) == ("exact", slots, "0.33.0+mini")


@pytest.mark.parametrize(
    ("draft", "slots", "ids_from"),
    [
        ({}, "h[2] ⊕ h[16] ⊕ h[29]", None),
        ({"eagle_aux_hidden_state_layer_ids": [3, 7]}, "h[3] ⊕ h[7]", "eagle_aux_hidden_state_layer_ids"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7]}}, "h[2] ⊕ h[16] ⊕ h[29]", None),
        ({"eagle_config": {"layer_ids": [3, 7]}}, "h[3] ⊕ h[7]", "eagle_config.layer_ids"),
        ({"eagle_aux_hidden_state_layer_ids": []}, "h[2] ⊕ h[16] ⊕ h[29]", None),
    ],
)
def test_where_the_resolver_looks(engine: Path, draft: dict[str, Any], slots: str, ids_from: str | None) -> None:
    """The resolver is run on the draft's own config; ids below eagle_config's EAGLE-3 key are not found."""
    wiring = derive(engine, draft=draft)
    assert (wiring.status, str(wiring), wiring.ids_from and ".".join(wiring.ids_from)) == ("exact", slots, ids_from)


def test_dflash_ids_are_layer_outputs(engine: Path) -> None:
    """The same resolver adds one to another kind's ids."""
    wiring = derive(engine, draft={"dflash_config": {"target_layer_ids": [1, 9]}}, kind="dflash")
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[10]")


def test_a_draft_that_asks_for_no_states(engine: Path) -> None:
    """use_aux_hidden_state turns the capture off."""
    wiring = derive(engine, draft={"eagle_config": {"use_aux_hidden_state": False}})
    assert (wiring.status, wiring.reason) == ("unknown", "the engine captures no auxiliary states for this config")


@pytest.mark.parametrize("name", ["RenamedForCausalLM", "VisionForConditionalGeneration"])
def test_other_names_and_wrappers(engine: Path, name: str) -> None:
    """The registry maps an architecture to a class; a multimodal class hands the ids to its language model."""
    assert str(derive(engine, (4, 8), name=name)) == "h[4] ⊕ h[8]"


def test_target_classes(engine: Path) -> None:
    """The classes that inherit the interface, not the interface."""
    found = open_serving(f"vllm@{engine}", root=engine)
    names = [binding.item.name for binding in found.engine.target_classes(found.source)]  # type: ignore[union-attr]
    assert sorted(names) == ["LlamaForCausalLM", "VisionForConditionalGeneration"]


REGISTERED = '"LlamaForCausalLM": ("llama", "LlamaForCausalLM"),'


def test_a_draft_that_is_registered_among_the_targets(engine: Path) -> None:
    """A class that takes the draft's config for its own is no target, whatever its name; one that reads it is."""
    path = engine / "vllm/model_executor/models/registry.py"
    text = path.read_text("utf-8")
    assert REGISTERED in text
    others = '"LateForCausalLM": ("late", "LateForCausalLM"), "CuriousForCausalLM": ("late", "CuriousForCausalLM"),'
    path.write_text(text.replace(REGISTERED, f"{REGISTERED} {others}"), "utf-8")
    (path.parent / "late.py").write_text(
        dedent(
            """
            from vllm.model_executor.models.llama import LlamaForCausalLM


            class Drafts:
                def _patch_config(self):
                    self.model_config = self.vllm_config.speculative_config.draft_model_config
                    self.config = self.model_config.hf_config


            class LateForCausalLM(Drafts, LlamaForCausalLM):
                def __init__(self, *, vllm_config, prefix=""):
                    self.vllm_config = vllm_config
                    self.config = vllm_config.model_config.hf_config
                    self._patch_config()


            class CuriousForCausalLM(LlamaForCausalLM):
                def __init__(self, *, vllm_config, prefix=""):
                    super().__init__(vllm_config=vllm_config, prefix=prefix)
                    self.config = vllm_config.model_config.hf_config
                    self.drafted = vllm_config.speculative_config.draft_model_config is not None
            """
        ),
        "utf-8",
    )
    found = open_serving(f"vllm@{engine}", root=engine)
    names = [binding.item.name for binding in found.engine.target_classes(found.source)]  # type: ignore[union-attr]
    assert sorted(names) == ["CuriousForCausalLM", "LlamaForCausalLM", "VisionForConditionalGeneration"]


CONFIG = """from transformers import PretrainedConfig


class LlamaConfig(PretrainedConfig):
    def __init__(self, early=False, **kwargs):
        self.early = early
        super().__init__(**kwargs)


class LlamaDecoderLayer"""


@pytest.mark.parametrize(
    ("annotation", "status", "assumed"), [(": LlamaConfig", "exact", True), ("", "conditional", False)]
)
def test_the_config_class_that_a_models_parts_name(engine: Path, annotation: str, status: str, assumed: bool) -> None:
    """What the target's config does not say has the defaults of the one class that the model's file names for it."""
    path = engine / "vllm/model_executor/models/llama.py"
    text = path.read_text("utf-8")
    norm = "self.norm = RMSNorm(config.hidden_size)"
    for old, new in (
        ("class LlamaDecoderLayer", CONFIG),
        ("def __init__(self, config):", f"def __init__(self, config{annotation}):"),
        (norm, f"{norm}\n        self.config = config"),
        ("idx + 1,", "idx if self.config.early else idx + 1,"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    wiring = derive(engine, (4, 8))
    assert (wiring.status, str(wiring)) == (status, "h[4] ⊕ h[8]")
    assert ("the defaults of LlamaConfig" in wiring.assumptions) is assumed


def test_the_evidence(engine: Path) -> None:
    """The mixin's two lines and the runner's concatenation."""
    found = derive(engine, (4,)).evidence
    assert [(item.path, item.note) for item in found] == [
        ("vllm/model_executor/models/interfaces.py", "aux_hidden_state_layers = [4]"),
        (
            "vllm/model_executor/models/llama.py",
            "self._maybe_add_hidden_state(aux_hidden_states, idx + 1, hidden_states, residual)",
        ),
        ("vllm/model_executor/models/interfaces.py", "aux_hidden_states.append(value)"),
        ("vllm/v1/worker/gpu/spec_decode/speculator.py", "torch.cat(aux_hidden_states, dim=-1)"),
    ]


@pytest.mark.parametrize("kind", [["x"], {}, 3, "unheard"])
def test_a_foreign_config_of_no_kind(engine: Path, kind: object) -> None:
    """Whatever stands where the format names the kind of draft: unknown, with a reason."""
    wiring = derive(engine, draft={"speculators_model_type": kind, "transformer_layer_config": {}})
    assert (wiring.status, wiring.slots) == ("unknown", ())
    assert "no adapter for speculators'" in (wiring.reason or "")
