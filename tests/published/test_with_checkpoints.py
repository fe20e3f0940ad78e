"""A published config beside the checkpoint that its trainer would save: the header adds no finding to the config's own.

The names are those of SafeAILab and SpecForge (``midlayer``), speculators (``layers.0``) and z-lab (DFlash), the shapes
those that the config says. So an error here is one that a well-formed draft does not deserve.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig, read_draft
from eaglelint.project.pipelines import PipelineInput
from eaglelint.registry import all_rules
from eaglelint.scan import Options, gather
from tests.checkpoints import Spec, write_safetensors
from tests.published.test_published import EXPECTED, config, target


def number(draft: DraftConfig, key: str, default: int = 0) -> int:
    node = draft.text_node(key)
    return node.value if node is not None and type(node.value) is int else default


def checkpoint_of(draft: DraftConfig) -> dict[str, Spec] | None:
    """The tensors that a trainer saves for this config; ``None`` where the config does not say enough."""
    width, heads, layers = (number(draft, key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    if not (width and heads and layers) or draft.embedded or draft.kind == "unknown":
        return None
    size = number(draft, "head_dim") or width // heads
    groups = number(draft, "num_key_value_heads", heads)
    dflash = draft.kind in ("dflash", "domino", "dspark")
    states = len(draft.layer_ids[0].values) if draft.layer_ids else 3
    joined = draft.kind in ("eagle3", "peagle")
    found: dict[str, Spec] = {"norm.weight": ("BF16", [width])}
    found["fc.weight"] = ("BF16", [width, (2 if draft.kind == "eagle" else states) * width])
    if dflash:
        found["hidden_norm.weight"] = ("BF16", [width])
    for layer in range(layers):
        name = "midlayer" if joined and layers == 1 and draft.dialect != "speculators" else f"layers.{layer}"
        taken = 2 * width if joined and layer == 0 else width
        found[f"{name}.self_attn.q_proj.weight"] = ("BF16", [heads * size, taken])
        found[f"{name}.self_attn.k_proj.weight"] = ("BF16", [groups * size, taken])
        found[f"{name}.self_attn.v_proj.weight"] = ("BF16", [groups * size, taken])
        found[f"{name}.self_attn.o_proj.weight"] = ("BF16", [width, heads * size])
        for norm in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
            found[f"{name}.{norm}.weight"] = ("BF16", [width])
    found |= _vocabulary(draft, width)
    for flag, tensors in (
        ("fc_norm", {f"fc_norm.{state}.weight": ("BF16", [width]) for state in range(states)}),
        ("norm_before_fc", {"input_norm.weight": ("BF16", [states * width])}),
    ):
        node = draft.node("eagle_config", flag) or draft.node(flag)
        if node is not None and node.value is True:
            found |= tensors
    return found


def _vocabulary(draft: DraftConfig, width: int) -> dict[str, Any]:
    small, full = number(draft, "draft_vocab_size"), number(draft, "vocab_size")
    if not small or not full or draft.kind in ("domino", "dspark"):
        return {}
    found: dict[str, Any] = {"lm_head.weight": ("BF16", [small, width])}
    if small < full:
        step = full // small
        kept = [place * step for place in range(small)]
        mask = bytearray(full)
        for token in kept:
            mask[token] = 1
        found["d2t"] = ("I64", [small], [token - place for place, token in enumerate(kept)])
        found["t2d"] = ("BOOL", [full], list(mask))
    return found


TRAINED = [name for name in EXPECTED if checkpoint_of(read_draft(config(name), name)) is not None]


def test_most_configs_say_enough() -> None:
    """Else the tests below would pass by being few."""
    assert len(TRAINED) >= 30


@pytest.mark.parametrize("name", TRAINED)
def test_the_header_adds_nothing(name: str, tmp_path: Path) -> None:
    shutil.copy(config(name), tmp_path / "config.json")
    tensors = checkpoint_of(read_draft(config(name), name))
    assert tensors is not None
    write_safetensors(tmp_path / "model.safetensors", tensors)
    facts, problems, *_ = gather(PipelineInput(name, tmp_path, target(name)), Options())
    assert facts.checkpoint is not None
    found = {finding.code for rule in all_rules() for finding in rule.check(rule, facts)}
    known = {item["code"] for item in EXPECTED[name].get("findings", ())}
    assert (found - known, problems) == (ARGUED.get(name, set()), ())


# What a header adds, and with right: these configs say float16, and the checkpoint is stored in bfloat16.
ARGUED = {
    "SafeAILab__EAGLE_traineagle3": {"DTY001"},
    "SpecForge__deepseek-v3-671b-eagle3": {"DTY001"},
    "SpecForge__llama3-8B-eagle3": {"DTY001"},
}
