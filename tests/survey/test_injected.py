"""States that are captured before features of images are added to them: which are found, and which are left alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent, indent

import pytest

from eaglelint.serving import open_source
from eaglelint.survey.classes import survey_classes
from eaglelint.survey.facts import InjectedLate

SOUND = Path(__file__).parent.parent / "rules/projects/sound-sglang/sglang"
MODEL = """\
from sglang.srt.layers.logits_processor import LogitsProcessor
from sglang.srt.models.capture import CapturesStates, stream
from sglang.srt.models.llama import LlamaDecoderLayer, RMSNorm
from torch import nn


class Layer(LlamaDecoderLayer):
    def forward(self, hidden_states, residual, added=None):
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        elif {inside}:
            hidden_states, residual = self.input_layernorm(hidden_states, residual + added)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self.self_attn(hidden_states)
        if {between}:
            hidden_states = hidden_states + added
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        return self.mlp(hidden_states), residual


class VisionModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width = config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size)
        self.layers_to_capture = []

    def feature(self, features, i):
        return None if features is None or i >= 2 else features[:, i * self.width : (i + 1) * self.width]

    def forward(self, input_ids, input_embeds=None, {parameter}=None):
        hidden_states = self.embed_tokens(input_ids) if input_embeds is None else input_embeds
        residual = None
        captured = []
{before}
        for i, layer in enumerate(self.layers):
{body}
{after}
        return hidden_states, captured


class VisionForConditionalGeneration(CapturesStates, nn.Module):
    def __init__(self, config, quant_config=None, prefix=""):
        super().__init__()
        self.config = config
        self.visual = nn.Linear(config.hidden_size, config.hidden_size)
        self.model = VisionModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.logits_processor = LogitsProcessor(config)

    def forward(self, input_ids, positions, forward_batch):
        images = None
        if forward_batch.contains_mm_inputs():
            images = {images}
        hidden_states, captured = self.model(input_ids, {parameter}=images)
        return self.logits_processor(input_ids, hidden_states, self.lm_head, forward_batch, captured)


EntryClass = VisionForConditionalGeneration
"""
CAPTURE = """\
if i in self.layers_to_capture:
    captured.append(stream(hidden_states, residual))
"""
ADD = """\
if self.feature(deepstack, i) is not None:
    hidden_states = hidden_states + self.feature(deepstack, i)
"""
LAYER = "hidden_states, residual = layer(hidden_states, residual)\n"
HANDED = "hidden_states, residual = layer(hidden_states, residual, self.feature(deepstack, i - 1) if i else None)\n"
NORM = "hidden_states, _ = self.norm(hidden_states, residual)\n"
INDEXED = """\
if deepstack is not None and i < len(deepstack):
    hidden_states = hidden_states + deepstack[f"level_{i}"]
"""


def cases(root: Path, body: str, *, before: str = "", after: str = NORM, **given: str) -> tuple[InjectedLate, ...]:
    """What is found in a small engine with a model whose loop over the layers does that in each round."""
    parts = {"inside": "False", "between": "False", "parameter": "deepstack", "images": "[self.visual(input_ids)]"}
    parts |= given
    parts["body"] = indent(dedent(body), " " * 12)
    parts |= {"before": indent(dedent(before), " " * 8), "after": indent(dedent(after), " " * 8)}
    shutil.copytree(SOUND, root / "sglang")
    (root / "sglang/srt/models/vision.py").write_text(MODEL.format(**parts), "utf-8")
    handle = open_source(f"sglang@{root}", root=root, display_root=root)
    binding = handle.engine.target_class(handle.source, "VisionForConditionalGeneration")
    assert binding is not None
    (facts,) = survey_classes(handle.engine, handle.source, [binding])
    assert facts.default is not None
    assert (str(facts.default.wiring), facts.default.wiring.status) == ("h[2] ⊕ h[6] ⊕ h[9]", "exact")
    return facts.default.injected_late


def test_what_is_said_of_a_capture(tmp_path: Path) -> None:
    """Which states lack features, of which argument; the line of the capture, and of the first feature."""
    (case,) = cases(tmp_path, CAPTURE + HANDED, inside="added is not None")
    assert (case.boundaries, case.name, case.counted) == ((1, 2), "deepstack", None)
    assert case.capture.code == "captured.append(stream(hidden_states, residual))"
    assert case.taken.code == "features[:, i * self.width : (i + 1) * self.width]"


@pytest.mark.parametrize(
    ("body", "given", "boundaries"),
    [
        (CAPTURE + ADD.replace("i)", "i - 1)").replace("if ", "if i and ", 1) + LAYER, {}, (1, 2)),
        (CAPTURE + HANDED, {"inside": "added is not None", "parameter": "deepstack"}, (1, 2)),
        (LAYER + CAPTURE.replace("if i in", "if i + 1 in") + ADD, {}, (1, 2)),
        (LAYER + CAPTURE.replace("if i in", "if i + 1 in") + INDEXED, {}, (1, 2, 3)),
        (
            CAPTURE + HANDED.replace("deepstack", "rows"),
            {"inside": "added is not None", "before": "rows = deepstack"},
            (1, 2),
        ),
    ],
    ids=["before the layer", "in the layer, before its norm", "behind the layer", "by name", "by another name"],
)
def test_a_capture_before_the_addition(
    tmp_path: Path, body: str, given: dict[str, str], boundaries: tuple[int, ...]
) -> None:
    """Wherever the features are added: what counts is that the next layer computes from the sum."""
    assert [case.boundaries for case in cases(tmp_path, body, **given)] == [boundaries]


def test_the_number_of_features_is_asked_for(tmp_path: Path) -> None:
    """It is not known, and so the answer names the number that was taken."""
    (case,) = cases(tmp_path, LAYER + CAPTURE.replace("if i in", "if i + 1 in") + INDEXED)
    assert case.counted == 3


def test_the_last_state(tmp_path: Path) -> None:
    """Features that are added in front of the last layers count as those in front of the first."""
    add = "if deepstack is not None and i >= 10:\n    hidden_states = hidden_states + deepstack[i]\n"
    (case,) = cases(tmp_path, CAPTURE + add + LAYER)
    assert case.boundaries == (10, 11)


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (ADD + CAPTURE + LAYER, {}),
        (LAYER + ADD + CAPTURE.replace("if i in", "if i + 1 in"), {}),
        (LAYER + INDEXED + CAPTURE.replace("if i in", "if i + 1 in"), {}),
        (
            LAYER
            + ADD.replace("hidden_states = hidden_states + ", "hidden_states.add_(").replace("i)\n", "i))\n")
            + CAPTURE.replace("if i in", "if i + 1 in"),
            {},
        ),
        (CAPTURE + HANDED, {}),
        (CAPTURE + HANDED, {"between": "added is not None"}),
        (CAPTURE + ADD.replace("i)", "i - 1)") + LAYER, {"images": "None"}),
        (CAPTURE + ADD.replace("i)", "i - 1)") + LAYER, {"images": "self.load(forward_batch)"}),
        (CAPTURE + LAYER, {}),
        (CAPTURE + "if deepstack is not None:\n    hidden_states = deepstack[i]\n" + LAYER, {}),
        (
            CAPTURE
            + "if deepstack is not None:\n    hidden_states = hidden_states + deepstack[self.which(i)]\n"
            + LAYER,
            {},
        ),
        (CAPTURE + LAYER, {"before": "if deepstack is not None:\n    hidden_states = hidden_states + deepstack[0]"}),
    ],
    ids=[
        "added before the capture",
        "added behind the layer, then captured",
        "the same by name",
        "in place",
        "handed over and not used",
        "in the layer, between its branches",
        "never handed over",
        "it is not known whether it is handed over",
        "not read",
        "in place of the stream",
        "it is not known which one",
        "added to the embedding",
    ],
)
def test_what_is_left_alone(tmp_path: Path, body: str, given: dict[str, str]) -> None:
    """Captures of what the layers go on with, arguments that bring nothing, and all that is not known."""
    assert cases(tmp_path, body, **given) == ()
