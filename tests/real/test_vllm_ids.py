"""Where vLLM's two runners look for a draft's ids, and what they make of them, as a person read it in their resolvers.

0.33.0: v1/worker/gpu_model_runner.py:5190 (V1), v1/worker/gpu/spec_decode/eagle/eagle3_utils.py (V2, the default),
transformers_utils/configs/speculators/algos.py; 0.19.1: v1/worker/gpu_model_runner.py:4889 (V1, the default there).
"""

from __future__ import annotations

from typing import Any

import pytest

from eaglelint.deployment import parse_assumptions
from eaglelint.derive import ServingRequest, derive_serving
from eaglelint.wiring import Wiring

pytestmark = pytest.mark.real

_DEFAULT = "h[2] ⊕ h[6] ⊕ h[9]"
_TOP = {"eagle_aux_hidden_state_layer_ids": [7, 3]}
_NESTED = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7]}}
_SHAPE = {"draft_vocab_size": 10, "mask_token_id": 5, "transformer_layer_config": {"hidden_size": 8}}
_KEY = "eagle_aux_hidden_state_layer_ids"

CASES: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("eagle3", "top level", _TOP, "h[3] ⊕ h[7]", "h[3] ⊕ h[7]"),
    ("eagle3", "nested", _NESTED, "h[3] ⊕ h[7]", _DEFAULT),
    ("eagle3", "nested layer_ids", {"eagle_config": {"layer_ids": [3, 7]}}, _DEFAULT, "h[3] ⊕ h[7]"),
    ("eagle3", "nothing", {}, _DEFAULT, _DEFAULT),
    ("eagle3", "both", {_KEY: [4, 8], **_NESTED}, "h[4] ⊕ h[8]", "h[4] ⊕ h[8]"),
    ("dflash", "section", {"dflash_config": {"target_layer_ids": [1, 9]}}, "h[2] ⊕ h[10]", "h[2] ⊕ h[10]"),
    ("dflash", "section beside an eagle_config", {"dflash_config": {"target_layer_ids": [1]}, "eagle_config": {"a": 1}},
     _DEFAULT, "h[2]"),
    ("dflash", "top level", {"target_layer_ids": [1, 9]}, _DEFAULT, "h[2] ⊕ h[10]"),
    ("dspark", "its key", {"dspark_target_layer_ids": [1, 9]}, _DEFAULT, "h[2] ⊕ h[10]"),
    ("dspark", "its key in V4.1", {"dspark_target_layer_ids": [1, 9], "model_type": "deepseek_v41"},
     _DEFAULT, "h[1] ⊕ h[9]"),
    ("eagle3", "speculators", {"speculators_model_type": "eagle3", **_TOP, **_SHAPE}, "h[3] ⊕ h[7]", "h[3] ⊕ h[7]"),
    ("peagle", "speculators", {"speculators_model_type": "peagle", **_TOP, **_SHAPE}, "h[3] ⊕ h[7]", "h[3] ⊕ h[7]"),
    ("dflash", "speculators", {"speculators_model_type": "dflash", "aux_hidden_state_layer_ids": [3, 7], **_SHAPE},
     "h[3] ⊕ h[7]", "h[3] ⊕ h[7]"),
    ("dspark", "speculators", {"speculators_model_type": "dspark", "aux_hidden_state_layer_ids": [3, 7], **_SHAPE},
     "h[3] ⊕ h[7]", "h[3] ⊕ h[7]"),
]  # fmt: skip


def _derive(open_engine: Any, version: str, kind: str, draft: dict[str, Any], runner: str = "") -> Wiring:
    handle = open_engine("vllm", version)
    target = handle.engine.target_class(handle.source, "LlamaForCausalLM")
    deployment = parse_assumptions([f"runner={runner}"] if runner else [])
    request = ServingRequest(target, 12, {"num_hidden_layers": 12}, kind, draft, deployment=deployment)
    return derive_serving(handle.engine, handle.source, request)


@pytest.mark.parametrize(("kind", "where", "draft", "v1", "v2"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_each_runner_looks_for_itself(
    kind: str, where: str, draft: dict[str, Any], v1: str, v2: str, real_engine: Any
) -> None:
    """The same draft under either runner of 0.33.0."""
    found = [_derive(real_engine, "0.33.0", kind, draft, runner) for runner in ("v1", "v2")]
    assert [(wiring.status, str(wiring)) for wiring in found] == [("exact", v1), ("exact", v2)]


@pytest.mark.parametrize(
    ("version", "kind", "runner"),
    [("0.33.0", "eagle3", "V2"), ("0.33.0", "peagle", "V1"), ("0.33.0", "dflash", "V2"), ("0.19.1", "eagle3", "V1")],
)
def test_the_runner_that_a_release_takes(version: str, kind: str, runner: str, real_engine: Any) -> None:
    """V2 by default in 0.33.0, but not for what it refuses; in 0.19.1 it has to be asked for."""
    wiring = _derive(real_engine, version, kind, _TOP)
    assert f"vLLM's model runner {runner} (runner={runner.lower()})" in wiring.assumptions


def test_the_older_runner_knows_one_place(real_engine: Any) -> None:
    """0.19.1 reads the key at the top level and no other."""
    found = [_derive(real_engine, "0.19.1", "eagle3", draft) for draft in (_TOP, _NESTED)]
    assert [(wiring.status, str(wiring)) for wiring in found] == [("exact", "h[3] ⊕ h[7]"), ("exact", _DEFAULT)]


def test_an_adapter_whose_parameter_is_called_otherwise(real_engine: Any) -> None:
    """0.13.0 rewrites configs in speculators' format too, into what it calls vllm_config."""
    draft = {"speculators_model_type": "eagle3", **_TOP, **_SHAPE}
    wiring = _derive(real_engine, "0.13.0", "eagle3", draft)
    assert (wiring.status, str(wiring)) == ("exact", "h[3] ⊕ h[7]")


def test_no_domino(real_engine: Any) -> None:
    """V2 captures for the methods that vLLM has; Domino is none of them."""
    wiring = _derive(real_engine, "0.33.0", "domino", {"dflash_config": {"target_layer_ids": [1]}})
    assert (wiring.status, wiring.reason) == ("unknown", "the engine captures no auxiliary states for this config")
