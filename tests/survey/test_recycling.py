"""Drafts that hand themselves a state of another form than their target's: what is counted, and what stays open."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eaglelint.serving import open_source
from eaglelint.survey.facts import UnlikeStates
from eaglelint.survey.recycling import unlike_states

PROJECTS = Path(__file__).parent.parent / "rules/projects"
REGISTRY = """\
_TEXT_GENERATION_MODELS = {"GlmForCausalLM": ("glm", "GlmForCausalLM"), "OtherForCausalLM": ("other", "Other")}
_SPECULATIVE_DECODING_MODELS = {"GlmMTPModel": ("glm_mtp", "GlmMTP")}
"""
PROPOSER = """\
class Proposer:
    def propose(self, states):
        for _ in range(self.num_speculative_tokens):
            returned = self.model(self.hidden_states)
            if self.model_returns_tuple():
                PAIR = returned
            else:
                last = returned
                kept = returned
            self.sample(self.model.compute_logits(last))
            self.hidden_states[:1] = kept
"""
HEAD = """\
from torch import nn


class LogitsProcessor(nn.Module):
    def forward(self, lm_head, hidden_states):
        return lm_head(hidden_states)
"""
IMPORTS = """\
import torch
from torch import nn
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.logits_processor import LogitsProcessor
"""
TARGET = """

class {cls}(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        self.norm = RMSNorm(1)
        self.lm_head = nn.Linear(1, 1)
        self.logits_processor = LogitsProcessor()

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
        return self.model(input_ids)

    def compute_logits(self, hidden_states):
        return self.logits_processor(self.lm_head, {read})
"""
LAYER = """

class GlmDecoderLayer(nn.Module):
    def forward(self, hidden_states, residual):
        return self.mlp(hidden_states), residual
"""
DRAFT = """\
from vllm.model_executor.models.glm import GlmDecoderLayer


class GlmMTP(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        config = vllm_config.model_config.hf_config
        self.eh_proj = nn.Linear(2, 1)
        self.layers = nn.ModuleDict({{str(i): GlmDecoderLayer() for i in range(config.num_nextn_predict_layers)}})
        self.norm = RMSNorm(1)
        self.other_norm = RMSNorm(1)
        self.lm_head = nn.Linear(1, 1)
        self.logits_processor = LogitsProcessor()

    def forward(self, input_ids, positions, hidden_states, intermediate_tensors=None, inputs_embeds=None):
        hidden_states = self.eh_proj(torch.cat([self.embed_tokens(input_ids), hidden_states], dim=-1))
        hidden_states, residual = self.layers["0"](hidden_states, None)
        hidden_states = hidden_states + residual
        return {returns}

    def compute_logits(self, hidden_states, spec_step_idx=0):
        return self.logits_processor(self.lm_head, {read})
{more}"""

SWAPPED = {"returns": "self.norm(hidden_states), hidden_states"}


def in_vllm(
    root: Path,
    returns: str = "hidden_states",
    *,
    read: str = "self.norm(hidden_states)",
    target: str = "hidden_states",
    other: str | None = None,
    pair: str = "last, kept",
    more: str = "",
) -> tuple[UnlikeStates, ...]:
    """What is found in a small vLLM with that draft.

    Args:
        returns: What the draft returns.
        read: What its head reads of it.
        target: What the target's head reads of what the target returns.
        other: The same of another target, whose file imports the first one's layer.
        pair: The names under which the proposer takes a pair apart; ``last`` goes to the head.
        more: Further methods of the draft.
    """
    shutil.copytree(PROJECTS / "mini-vllm/vllm", root / "vllm")
    models, drafting = root / "vllm/model_executor/models", root / "vllm/v1/spec_decode"
    drafting.mkdir()
    (drafting / "proposer.py").write_text(PROPOSER.replace("PAIR", pair), "utf-8")
    (root / "vllm/model_executor/layers/logits_processor.py").write_text(HEAD, "utf-8")
    (models / "registry.py").write_text(REGISTRY, "utf-8")
    (models / "glm.py").write_text(IMPORTS + LAYER + TARGET.format(cls="GlmForCausalLM", read=target), "utf-8")
    (models / "glm_mtp.py").write_text(IMPORTS + DRAFT.format(returns=returns, read=read, more=more), "utf-8")
    if other is not None:
        imports = "from vllm.model_executor.models.glm import GlmDecoderLayer\n"
        (models / "other.py").write_text(IMPORTS + imports + TARGET.format(cls="Other", read=other), "utf-8")
    handle = open_source(f"vllm@{root}", root=root, display_root=root)
    return unlike_states(handle.engine, handle.source)


def test_what_is_said_of_a_draft(tmp_path: Path) -> None:
    """Both counts, where the state is returned, where it is normed for the head, and the target with its line."""
    (case,) = in_vllm(tmp_path)
    assert (case.cls, case.norms, case.target, case.target_norms) == ("GlmMTP", 1, "GlmForCausalLM", 0)
    assert (str(case.returned), case.returned.code) == (
        "vllm/model_executor/models/glm_mtp.py:22",
        "return hidden_states",
    )
    assert case.normed is not None
    assert (str(case.normed), case.normed.code) == (
        "vllm/model_executor/models/glm_mtp.py:25",
        "self.norm(hidden_states)",
    )
    assert (str(case.target_defined), case.target_normed) == ("vllm/model_executor/models/glm.py:12", None)


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({"read": "self.norm(self.other_norm(hidden_states))"}, (2, 0)),
        (
            {"returns": "self.norm(hidden_states)", "read": "hidden_states", "target": "self.norm(hidden_states)"},
            (0, 1),
        ),
        ({"returns": "hidden_states, hidden_states"}, (1, 0)),
        ({"returns": "self.norm(hidden_states), hidden_states", "read": "hidden_states"}, (1, 0)),
        ({"returns": "hidden_states, self.norm(hidden_states)", "read": "hidden_states"}, (-1, 0)),
        ({**SWAPPED, "pair": "kept, last", "target": "self.norm(hidden_states)"}, (0, 1)),
        ({"other": "hidden_states"}, (1, 0)),
    ],
    ids=[
        "two norms",
        "the target is the one that is raw",
        "a pair of the same",
        "a pair, the raw one kept",
        "a pair, a norm that the head does not read",
        "a pair in the other order, against a target that is raw",
        "two targets that agree",
    ],
)
def test_what_is_counted(tmp_path: Path, given: dict[str, str], counts: tuple[int, int]) -> None:
    """The norms between what is handed on and what the head reads, of the draft and of the target."""
    (case,) = in_vllm(tmp_path, **given)
    assert (case.norms, case.target_norms) == counts


@pytest.mark.parametrize(
    "given",
    [
        {"returns": "self.norm(hidden_states)", "read": "hidden_states"},
        {"read": "hidden_states"},
        {"target": "self.norm(hidden_states)"},
        {"returns": "hidden_states, self.norm(hidden_states)"},
        {**SWAPPED, "pair": "kept, last"},
        {"returns": "hidden_states, hidden_states", "pair": "last, _"},
        {"returns": "hidden_states, hidden_states, None"},
        {"other": "self.norm(hidden_states)"},
        {"returns": "self.model(hidden_states)"},
        {"returns": "self.norm(hidden_states) if self.flag else hidden_states", "read": "hidden_states"},
        {"more": "\n    def combine_hidden_states(self, hidden_states):\n        return self.fc(hidden_states)\n"},
    ],
    ids=[
        "normed for both",
        "a draft without a final norm",
        "both raw",
        "a pair, as it should be",
        "a pair in the other order, as it should be",
        "a pair of which it is not known which one is kept",
        "three states",
        "one target of another form",
        "what returns it is not followed",
        "it depends",
        "a draft that joins several states",
    ],
)
def test_what_is_left_alone(tmp_path: Path, given: dict[str, str]) -> None:
    """Steps that are handed the same, and those of which it is not known."""
    assert in_vllm(tmp_path, **given) == ()


NEXTN = """\
import torch
from sglang.srt.layers.logits_processor import LogitsProcessor
from sglang.srt.models.llama import LlamaDecoderLayer, LlamaForCausalLM, RMSNorm
from torch import nn


class LlamaModelNextN(nn.Module):
    def __init__(self, config):
        self.eh_proj = nn.Linear(2, 1)
        self.decoder = LlamaDecoderLayer(config)
        self.norm = RMSNorm(1)

    def forward(self, input_ids, forward_batch):
        states = [self.embed_tokens(input_ids), forward_batch.spec_info.hidden_states]
        hidden_states, residual = self.decoder(self.eh_proj(torch.cat(states, dim=-1)), None)
        return hidden_states + residual


class LlamaForCausalLMNextN(LlamaForCausalLM):
    def __init__(self, config, quant_config=None, prefix=""):
        self.model = LlamaModelNextN(config)
        self.lm_head = nn.Linear(1, 1)
        self.logits_processor = LogitsProcessor(config)

    def forward(self, input_ids, positions, forward_batch):
        hidden_states = self.model(input_ids, forward_batch)
        return self.logits_processor(input_ids, {given})


EntryClass = LlamaForCausalLMNextN
"""
NORMED = "self.model.norm(hidden_states), self.lm_head, forward_batch"
BEFORE = ", hidden_states_before_norm=hidden_states"


def in_sglang(root: Path, draft: str, target: str = "") -> tuple[UnlikeStates, ...]:
    """What is found in a small SGLang; what each hands to the logits processor."""
    shutil.copytree(PROJECTS / "sound-sglang/sglang", root / "sglang")
    srt = root / "sglang/srt"
    processor = srt / "layers/logits_processor.py"
    text = processor.read_text("utf-8").replace(
        "aux_hidden_states=None):", "aux_hidden_states=None, hidden_states_before_norm=None):"
    )
    processor.write_text(text, "utf-8")
    model = srt / "models/llama.py"
    text = model.read_text("utf-8").replace("forward_batch, aux_hidden_states)", f"forward_batch{target})")
    text = text.replace("_ = self.norm", "before = self.norm").replace(
        "return hidden_states, aux", "return hidden_states, before  # aux"
    )
    text = text.replace("hidden_states, aux_hidden_states = self", "hidden_states, before = self")
    model.write_text(text, "utf-8")
    (srt / "models/llama_nextn.py").write_text(NEXTN.format(given=draft), "utf-8")
    handle = open_source(f"sglang@{root}", root=root, display_root=root)
    return unlike_states(handle.engine, handle.source)


def test_sglang_takes_the_state_before_the_norm_where_it_is_given_one(tmp_path: Path) -> None:
    """The draft gives the processor its raw state beside the normed one, the target does not."""
    (case,) = in_sglang(tmp_path, NORMED + BEFORE)
    assert (case.cls, case.norms, case.target, case.target_norms) == ("LlamaForCausalLMNextN", 1, "LlamaForCausalLM", 0)
    assert str(case.returned) == "sglang/srt/models/llama_nextn.py:16"


@pytest.mark.parametrize(
    ("draft", "target"),
    [
        (NORMED, ""),
        (NORMED + BEFORE, ", hidden_states_before_norm=before"),
        (NORMED + ", hidden_states_before_norm=hidden_states if forward_batch.raw else None", ""),
        (NORMED + ", [hidden_states]" + BEFORE, ""),
    ],
    ids=["neither", "both", "on one path", "states for EAGLE-3"],
)
def test_what_sglang_hands_on_alike(tmp_path: Path, draft: str, target: str) -> None:
    assert in_sglang(tmp_path, draft, target) == ()
