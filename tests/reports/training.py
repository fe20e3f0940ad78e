"""Public reports whose cause stands in training code or in a dump: the smallest script that shows each, and it mended."""

from __future__ import annotations

import json
from typing import Any

from tests.reports.cases import OFFSETS, SMALL, SMALL_TARGET, Case, bits
from tests.reports.parts import (
    CHECKPOINT,
    DFLASH,
    DRAFT,
    SPECULATORS,
    TARGET,
    Project,
    adapter,
    of_page,
    project,
    varied,
)

__all__ = ["TRAINING"]


def trained(
    draft: dict[str, Any] = DRAFT,
    target: dict[str, Any] = TARGET,
    *,
    checkpoint: dict[str, Any] | None = None,
    dump: bool = False,
    **files: str,
) -> Project:
    """A draft beside training code and, with ``dump``, beside a dump."""
    options = (("--training", "training") if any(name.startswith("training") for name in files) else ()) + (
        ("--dump", "dump") if dump else ()
    )
    return project(draft, target, checkpoint, options=options, **files)


DUMP = """import torch

LAYERS = (2, 18, 33)


def capture(self, input_ids, positions):
    hidden_states, residual = self.embed_tokens(input_ids), None
    states = []
    for i, layer in enumerate(self.layers):
        if i in LAYERS:
            states.append(hidden_states + residual)
        hidden_states, residual = layer(positions, hidden_states, residual)
    states.append(hidden_states + residual)
    return states


def main(model, loader, out):
    for index, batch in enumerate(loader):
        states = capture(model, batch["input_ids"], batch["positions"])
        torch.save({"input_ids": batch["input_ids"], "hidden_states": states}, f"{out}/{index}.pt")
"""
# An engine that captures before layers is asked for the last layer's number: the label is a layer too early.
EARLY = DUMP.replace("33)", "33, 35)").replace("    states.append(hidden_states + residual)\n    return", "    return")
DATA = """import torch


def load(path):
    data = torch.load(path)
    states = data["hidden_states"]
    return {"input_ids": data["input_ids"], "hidden_states": torch.cat(states[:-1], dim=-1), "target": states[-1]}
"""
ALL = DATA.replace("states[:-1]", "states")


def step(logits: str) -> str:
    """A training step that makes the target's logits so."""
    return f"""import torch
import torch.nn.functional as F


class Trainer:
    def step(self, batch):
        with torch.no_grad():
            logits = {logits}
        return self.loss(self.draft(batch["hidden_states"], batch["input_ids"]), logits)
"""


def dumped(logits: str) -> Project:
    """States from before the final norm, and a step that makes logits of the last one."""
    return trained(training__dump_dot_py=DUMP, training__data_dot_py=DATA, training__train_dot_py=step(logits))


def two_spots(middle: str) -> Project:
    """One trainer captures in two places."""

    def spot(name: str, index: str) -> str:
        return f"""import torch


def {name}(model, input_ids):
    count = model.config.num_hidden_layers
    states = model(input_ids, output_hidden_states=True).hidden_states
    return torch.cat((states[2], states[{index}], states[count - 3]), dim=-1)
"""

    return trained(training__one_dot_py=spot("online", "count // 2"), training__two_dot_py=spot("offline", middle))


def manifest(layers: list[int], depth: int) -> Project:
    """A dump whose manifest names these layers, and a DFlash draft of six."""
    draft = varied(
        DFLASH,
        num_hidden_layers=depth,
        dflash_config={"mask_token_id": 151669, "target_layer_ids": [1, 7, 14, 20, 27, 33]},
    )
    sample = json.dumps({"input_ids": "I64 [512]", "aux_hidden_states": f"BF16 [512, {4096 * len(layers)}]"})
    return trained(
        draft,
        dump=True,
        dump__manifest_dot_json=json.dumps({"layer_ids": layers}),
        dump__0_dot_safetensors=sample,
    )


def feedback(body: str) -> Project:
    """Three steps of a draft in training; ``body`` makes logits of its output."""
    return trained(
        training__train_dot_py=f"""class Trainer:
    def forward(self, hidden_states, embeds):
        losses = []
        for step in range(self.length):
            out = self.draft_layer(embeds, hidden_states)
{body}
            losses.append(self.loss(logits, step))
            hidden_states = out
        return losses
"""
    )


UNEVEN = """            if self.config.norm_output:
                out = self.norm(out)
            logits = self.lm_head(out)"""
EVEN = """            normed = self.norm(out)
            logits = self.lm_head(normed)
            out = normed if self.config.norm_output else out"""


def modelopt(flag: bool, logits: str = 'self.lm_head(batch["base_model_hidden_states"])') -> Project:
    """A dump that says whether its last state was taken before the norm, and a trainer without the code that made it."""
    loader = f"""from safetensors.torch import load_file


def load(path):
    data = load_file(path)
    return {{"aux_hidden_states": data["aux_hidden_states"], "base_model_hidden_states": data["hidden_states"]}}


class Distiller:
    def step(self, batch):
        logits = {logits}
        return self.loss(self.draft(batch["aux_hidden_states"]), logits)
"""
    sample = {"input_ids": "I64 [512]", "aux_hidden_states": "BF16 [512, 12288]", "hidden_states": "BF16 [512, 4096]"}
    return trained(
        dump=True,
        dump__manifest_dot_json=json.dumps({"hidden_states_prenorm": flag}),
        dump__0_dot_safetensors=json.dumps(sample),
        training__train_dot_py=loader,
    )


def folded(weight: str) -> Project:
    """A trainer's own norm, with the weight of a target that multiplies with one more."""
    code = f"""import torch
from torch import nn


class FinalNorm(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, hidden_states):
        scale = torch.rsqrt(hidden_states.pow(2).mean(-1, keepdim=True) + 1e-6)
        return hidden_states * scale * self.weight


class Trainer:
    def __init__(self, weights):
        self.norm = FinalNorm({weight})
        self.lm_head = nn.Linear(4096, 151936, bias=False)

    def step(self, batch):
        logits = self.lm_head(self.norm(batch["target"]))
        return self.loss(self.draft(batch["hidden_states"], batch["input_ids"]), logits)
"""
    return trained(
        target=varied(TARGET, architectures=["Gemma3ForCausalLM"], model_type="gemma3_text"),
        training__dump_dot_py=DUMP,
        training__data_dot_py=DATA,
        training__train_dot_py=code,
    )


def verifier(norm: str, module: str) -> Project:
    """A DFlash trainer that takes the verifier's final norm from this class of transformers."""
    code = f"""from transformers.models.{module}.modeling_{module} import {norm}


class Core:
    def __init__(self):
        self.verifier_norm = {norm}(4096)

    def loss(self, batch):
        targets = self.verifier_lm_head(self.verifier_norm(batch["target"]))
        return self.compare(self.draft(batch["hidden_states"]), targets)
"""
    five = DUMP.replace("(2, 18, 33)", "(2, 10, 18, 26, 34)")
    return trained(
        DFLASH,
        varied(TARGET, architectures=["Qwen3_5ForCausalLM"], model_type="qwen3_5_text"),
        training__dump_dot_py=five,
        training__data_dot_py=DATA,
        training__core_dot_py=code,
    )


PADDING = """import torch


def padding(tensor, left=True):
    zeros = torch.zeros_like(tensor[:, -1:])
    if left:
        return torch.cat((zeros, tensor[:, :-1]), dim=1)
    return torch.cat((tensor[:, 1:], zeros), dim=1)


"""


def padded(target_left: bool) -> Project:
    code = f"""def preprocess(input_ids, target, loss_mask):
    target = padding(target, left={target_left})
    input_ids = padding(input_ids, left=False)
    return input_ids, target, loss_mask
"""
    return trained(training__data_dot_py=PADDING + code)


def backend(states: str) -> Project:
    """What one back end of a DFlash trainer hands on: ``states`` of the server's."""
    code = f"""def batch_of_server(batch):
    hidden_states = batch["hidden_states"]
    return {{"input_ids": batch["input_ids"], "hidden_states": {states}}}
"""
    return trained(DFLASH, training__data_dot_py=PADDING + code)


def one_field(last: str) -> Project:
    """A server's answer with the capture on."""
    return trained(
        training__sample_dot_py=f"""import torch


def sample(engine, input_ids):
    states = engine.model(input_ids, output_hidden_states=True).hidden_states
    joined = torch.cat((states[2], states[18], states[33]), dim=-1)
    return {{"hidden_states": joined, "last_hidden_states": {last}}}
"""
    )


def loaded(count: int) -> Project:
    """A loader that takes the last state off, and a sample with so many."""
    code = """from safetensors.torch import load_file


def load(path):
    states = load_file(path)["hidden_states"]
    return {"hidden_states": states[:, :-1].flatten(1), "verifier_last_hidden_states": states[:, -1]}
"""
    sample = json.dumps({"token_ids": "I64 [512]", "hidden_states": f"BF16 [512, {count}, 4096]"})
    return trained(dump=True, dump__0_dot_safetensors=sample, training__data_dot_py=code)


def template(options: str) -> Project:
    return trained(
        training__data_dot_py=f"""def generate(client, messages):
    options = {{"chat_template_kwargs": {{"enable_thinking": False}}}}
    return client.chat.completions.create(model="target", messages=messages, extra_body=options)


def tokenize(tokenizer, messages):
    return tokenizer.apply_chat_template(messages{options})
"""
    )


def requests(name: str) -> Project:
    return trained(
        training__generate_dot_py=f"""def generate(engine, prompts):
    states = {{}}
    for number, prompt in enumerate(prompts):
        states[f"req_{name}"] = engine.run(prompt)
    return [states[name] for name in sorted(states)]
"""
    )


def first_row(ids: str, states: str) -> Project:
    return trained(
        training__data_dot_py=PADDING
        + f"""def pairs(batch):
    input_ids, hidden_states = batch["input_ids"], batch["hidden_states"]
    return {{"input_ids": {ids}, "hidden_states": {states}}}
"""
    )


def tuned(parents: dict[str, list[int]]) -> Project:
    """A draft with four of sixteen tokens, and the one that it was trained further from."""
    head = {"lm_head.weight": "BF16 [4, 4096]"}
    own = {**CHECKPOINT, **head, "d2t": OFFSETS, "t2d": bits(2, 5, 10, 15)}
    parent = json.dumps({**head, "d2t": parents})
    options = ("--fine-tuned-from", "parent")
    return project(SMALL, SMALL_TARGET, own, options=options, parent__model_dot_safetensors=parent)


HEAD = 'self.target_head(batch["target"])'
NORMED = 'self.target_head(self.target_norm(batch["target"]))'
PRODUCT = 'F.linear(batch["target"], self.lm_head_weight)'
NORMED_PRODUCT = 'F.linear(self.norm(batch["target"]), self.lm_head_weight)'


def flagged(checkpoint: dict[str, Any], *copied: str) -> Project:
    """A draft in speculators' format that sets two norms, and an adapter that hands ``copied`` on."""
    draft = varied(SPECULATORS, norm_output=True, norm_before_fc=True)
    target = varied(TARGET, architectures=["LlamaForCausalLM"], model_type="llama")
    header = {name.replace("midlayer", "layers.0"): shape for name, shape in checkpoint.items()}
    return project(draft, target, header, engine="mini-vllm", **adapter(*copied))


TRAINING: tuple[Case, ...] = (
    Case("lightseekorg/TorchSpec#89", "the label is the output of the last layer but one", ("CAP008",),
         trained(training__dump_dot_py=EARLY, training__data_dot_py=DATA),
         trained(training__dump_dot_py=DUMP, training__data_dot_py=DATA)),
    Case("sgl-project/SpecForge#239", "two places of a trainer choose another layer in the middle", ("CAP005",),
         two_spots("count // 2 + 1"), two_spots("count // 2")),
    Case("NVIDIA/Model-Optimizer#2149", "the last state is kept as one more input", ("TRN003",),
         trained(training__dump_dot_py=DUMP, training__data_dot_py=ALL),
         trained(training__dump_dot_py=DUMP, training__data_dot_py=DATA)),
    Case("NVIDIA/Model-Optimizer#2201", "a dump for a fixed number of draft layers", ("TRN003",),
         manifest([1, 9, 17, 25, 33], 6), manifest([1, 7, 14, 20, 27, 33], 6)),
    Case("vllm-project/speculators#705", "a loader takes off a last state that was not dumped", ("TRN003",),
         loaded(3), loaded(4)),
    Case("vllm-project/speculators#610", "norm_output, which an adapter drops, and norm_before_fc without the norm", ("NRM001", "NRM002"),
         flagged(CHECKPOINT, "norm_before_fc"),
         flagged({**CHECKPOINT, "input_norm.weight": "BF16 [12288]"}, "norm_before_fc", "norm_output")),
    Case("sgl-project/SpecForge#879", "a flag for what is fed back leaves the logits without a norm", ("NRM005",),
         feedback(UNEVEN), feedback(EVEN)),
    Case("vllm-project/speculators#313", "targets without the final norm", ("NRM003",), dumped(HEAD), dumped(NORMED)),
    Case("NVIDIA/Model-Optimizer#1846", "targets without the final norm, as the dump says", ("NRM003",),
         modelopt(True), modelopt(True, 'self.lm_head(self.norm(batch["base_model_hidden_states"]))')),
    Case("verl-project/verl-SpeCo#76", "targets by a product with the head's weight alone", ("NRM003",),
         dumped(PRODUCT), dumped(NORMED_PRODUCT)),
    Case("verl-project/verl-SpeCo#76 (gain)", "the norm of a target that multiplies with 1 + weight", ("NRM004",),
         folded('weights["model.norm.weight"]'), folded('1 + weights["model.norm.weight"]')),
    Case("sgl-project/SpecForge#227", "padding goes the other way for the target", ("TRN001",), padded(True), padded(False)),
    Case("sgl-project/SpecForge#471", "states are padded as ids are, by one back end", ("TRN001",),
         backend("padding(hidden_states, left=False)"), backend("hidden_states")),
    Case("sgl-project/SpecForge#613", "with the capture on nobody hands on the last state", ("CAP008",),
         one_field("None"), one_field("states[-1]")),
    Case("vllm-project/speculators#613", "good validation, low acceptance with Qwen3.6 (one of the causes that were discussed)", ("NRM004",),
         verifier("Qwen3RMSNorm", "qwen3"), verifier("Qwen3_5RMSNorm", "qwen3_5")),
    Case("vllm-project/speculators#279", "requests are sorted as texts", ("TRN004",), requests("{number}"), requests("{number:06d}")),
    Case("sgl-project/SpecForge#296", "a chat template switches thinking", ("TRN005",), template(""), template(", enable_thinking=False")),
    Case("sgl-project/SpecForge#534", "fine-tuning makes another map", ("VOC004",), tuned({"I64": [2, 4, 6, 10]}), tuned(OFFSETS)),
    Case("vllm-project/vllm#49406", "training begins with token 0 and a state of zeros", ("TRN006",),
         first_row("input_ids", "padding(hidden_states)"), first_row("padding(input_ids, left=False)", "hidden_states")),
    Case("NVIDIA-NeMo/Automodel#2376", "the offset of each step is not counted", ("ROP006",),
         of_page("ROP006", "Example"), of_page("ROP006", "Use instead")),
)  # fmt: skip
