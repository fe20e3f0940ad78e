"""Public reports that files alone can betray: for each the smallest project that shows it, and the same one mended.

A report that is found names the rule. One whose answer was that all is right has to stay silent. One that is not found
says what it would take. The page docs/reports.md is made from this list (``python -m tests.reports.page``).
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.reports.parts import (
    CHECKPOINT,
    DFLASH,
    DFLASH_CHECKPOINT,
    DRAFT,
    EAGLE,
    EAGLE_CHECKPOINT,
    NOTHING,
    TARGET,
    Project,
    dflash_engine,
    eagle_class,
    index,
    of_page,
    project,
    varied,
)

__all__ = ["CASES", "MISSED", "RIGHT", "Case", "Missed"]


@dataclass(frozen=True, slots=True)
class Case:
    """A report that is found: by which rules, in which project; ``mended`` is the same without the fault."""

    report: str
    what: str
    rules: tuple[str, ...]
    project: Project
    mended: Project


@dataclass(frozen=True, slots=True)
class Right:
    """A report that asks about something that is right: the rule stays silent, and speaks on a look-alike."""

    report: str
    what: str
    rule: str
    project: Project
    wrong: Project


@dataclass(frozen=True, slots=True)
class Missed:
    """A report that is not found, and what it would take."""

    report: str
    what: str
    why: str


PROJECTS = Path(__file__).parents[1] / "rules" / "projects"
IDS = "eagle_aux_hidden_state_layer_ids"
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
GOOD = project(DRAFT)
SGLANG = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"
VLLM = 'vllm serve Qwen/Qwen3-8B --speculative-config \'{"method": "eagle3", "model": "draft"}\''
MINI = {**TARGET, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}


def ids(values: Any, **more: Any) -> dict[str, Any]:
    return varied(DRAFT, eagle_config={IDS: values}, **more)


def dflash(**section: Any) -> dict[str, Any]:
    return varied(DFLASH, dflash_config=varied(DFLASH["dflash_config"], **section))


def served_as(setter: str, trained_by: str) -> Project:
    """A DFlash draft and an engine that makes ``setter`` of each of its ids."""
    return project(dflash(), MINI, engine="mini-sglang", options=("--trained-by", trained_by), **dflash_engine(setter))


def dumped(*entries: int) -> Project:
    """States dumped from Hugging Face's ``hidden_states``, and an engine that captures before layers 2, 18 and 33."""
    joined = ", ".join(f"hidden_states[{entry}]" for entry in entries)
    script = f"""import torch
from transformers import AutoModelForCausalLM


def dump(path, input_ids):
    model = AutoModelForCausalLM.from_pretrained("target")
    hidden_states = model(input_ids, output_hidden_states=True).hidden_states
    torch.save({{"hidden_state": torch.cat(({joined}), dim=-1)}}, path)
"""
    options = ("--training", "training")
    return project(ids([1, 17, 32]), MINI, engine="mini-sglang", options=options, training__dump_dot_py=script)


def eagle_norms(*kept: str) -> Project:
    """An EAGLE draft without norms of its own before the attention and at the end, and a class that keeps some."""
    draft = varied(EAGLE, architectures=["EagleLlamaForCausalLM"])
    header = {**EAGLE_CHECKPOINT, "layers.0.post_attention_layernorm.weight": "BF16 [4096]"}
    return project(draft, MINI, header, engine="mini-vllm", **eagle_class("post_attention_layernorm", *kept))


def joined(what: str) -> Project:
    """A draft of three states, and code that joins some of Hugging Face's ``hidden_states`` for it."""
    code = (
        dumped(2, 18, 33)
        .files["training/dump.py"]
        .replace("hidden_states[2], hidden_states[18], hidden_states[33]", "X")
    )
    options = ("--training", "training")
    return project(DRAFT, TARGET, CHECKPOINT, options=options, training__dump_dot_py=code.replace("(X)", what))


def without_states(resolver: str) -> Project:
    """A draft that takes no captured states, and a vLLM that asks its config so."""
    text = (PROJECTS / "mini-vllm/vllm/v1/worker/gpu/eagle3_utils.py").read_text("utf-8")
    honest = 'return eagle_config.get("use_aux_hidden_state", True)'
    assert honest in text
    return project(
        varied(DRAFT, eagle_config={"use_aux_hidden_state": False}),
        MINI,
        engine="mini-vllm",
        serving__vllm__v1__worker__gpu__eagle3_utils_dot_py=text.replace(honest, resolver),
    )


def converted(values: list[int]) -> Project:
    """A draft with ids at the top level, for a target of 48 layers, as llama.cpp's converter takes it."""
    draft = {**varied(DRAFT, eagle_config=NOTHING), IDS: values}
    return project(draft, varied(TARGET, num_hidden_layers=48), options=("--serving", "llama.cpp==0274f0f"))


def listed(*kinds: str) -> Project:
    """A draft for Qwen3, and a vLLM that takes EAGLE-3 drafts for targets of these kinds only."""
    check = f"""class SpeculativeConfig:
    def _verify_args(self):
        supported = {list(kinds)}
        if self.method == "eagle3" and not any(
            kind in self.target_model_config.hf_text_config.model_type for kind in supported
        ):
            raise ValueError(f"Eagle3 is only supported for {{supported}} models.")
        return self
"""
    draft = {**varied(DRAFT, eagle_config=NOTHING), IDS: [2, 18, 33]}
    target = varied(MINI, model_type="qwen3")
    return project(draft, target, engine="mini-vllm", serving__vllm__config__speculative_dot_py=check)


def alone(width: int) -> Project:
    """A whole model as the draft of another."""
    draft = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 16, "hidden_size": width,
             "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 151936}  # fmt: skip
    return project(draft, launch=f"{SGLANG} --speculative-algorithm STANDALONE --speculative-draft-model-path draft\n")


def registered(names: tuple[str, ...]) -> Project:
    """An EAGLE draft of Qwen2 and a vLLM that registers these classes of drafts."""
    tables = f"_SPECULATIVE_DECODING_MODELS = {dict.fromkeys(names, ('llama_eagle', 'EagleLlamaForCausalLM'))}\n"
    return project(
        varied(EAGLE, architectures=["EagleQwen2ForCausalLM"]),
        options=("--serving", "vllm@serving/vllm"),
        serving__vllm__model_executor__models__registry_dot_py=tables,
    )


def long(own: int, other: int = 131072, **more: Any) -> Project:
    return project(varied(DRAFT, max_position_embeddings=own, **more), varied(TARGET, max_position_embeddings=other))


def row(seed: int) -> list[float]:
    chance = random.Random(seed)
    return [round(chance.gauss(0, 1), 3) for _ in range(64)]


def embedded(seed: int) -> Project:
    """A narrow draft with an embedding of its own, beside a target whose embedding has seed 0."""
    draft = varied(
        DRAFT, hidden_size=64, num_attention_heads=4, num_key_value_heads=4, vocab_size=8, draft_vocab_size=8
    )
    checkpoint = {
        name: shape.replace("BF16", "F32").replace("12288", "192").replace("8192", "128").replace("4096", "64")
        for name, shape in CHECKPOINT.items()
    }
    checkpoint |= {"midlayer.self_attn.k_proj.weight": "F32 [64, 128]"}
    rows = {"embed_tokens.weight": {"F32": {"rows": [row(seed + 17 * place) for place in range(8)]}}}
    theirs = {"model.embed_tokens.weight": {"F32": {"rows": [row(17 * place) for place in range(8)]}}}
    more = {"target__model_dot_safetensors": json.dumps(theirs)}
    return project(draft, varied(TARGET, hidden_size=64, vocab_size=8), {**checkpoint, **rows}, **more)


def tokenizer(*words: str) -> str:
    return json.dumps({"model": {"vocab": {word: number for number, word in enumerate(words)}}})


def tokenizers(draft: str, target: str) -> Project:
    sizes = varied(DRAFT, vocab_size=4, draft_vocab_size=4), varied(TARGET, vocab_size=4)
    return project(*sizes, draft__tokenizer_dot_json=draft, target__tokenizer_dot_json=target)


def mask(token: int, content: str = "<|reserved_special_token_247|>") -> Project:
    draft = varied(
        DRAFT, architectures=["PEagleDraftModel"], vocab_size=128512, draft_vocab_size=128512, ptd_token_id=token
    )
    added = json.dumps({"added_tokens_decoder": {"128255": {"content": content}}})
    return project(draft, varied(TARGET, vocab_size=128512), target__tokenizer_config_dot_json=added)


SMALL = varied(DRAFT, vocab_size=16, draft_vocab_size=4)
SMALL_TARGET = varied(TARGET, vocab_size=16)
OFFSETS = {"I64": [2, 4, 8, 12]}


def mapped(maps: dict[str, Any], draft: dict[str, Any] = SMALL) -> Project:
    """A draft with four of sixteen tokens and these maps in its checkpoint."""
    return project(
        draft, SMALL_TARGET, {**CHECKPOINT, "lm_head.weight": f"BF16 [{draft['draft_vocab_size']}, 4096]", **maps}
    )


def bits(*kept: int) -> dict[str, list[int]]:
    return {"BOOL": [int(token in kept) for token in range(16)]}


MAPPED = mapped({"d2t": OFFSETS, "t2d": bits(2, 5, 10, 15)})
EAGLE_BIASED = {**EAGLE_CHECKPOINT, "fc.bias": "BF16 [4096]"}
QUARK = {"quant_method": "quark", "exclude": ["lm_head"]}
NEXTN = varied(EAGLE, architectures=["DeepseekV3ForCausalLMNextN"], model_type="deepseek_v3", quantization_config=QUARK)
NEXTN_CHECKPOINT = {"model.layers.61.self_attn.o_proj.weight": "BF16 [4096, 4096]"}
DEEP = varied(DRAFT, num_hidden_layers=36)
PARALLEL = varied(DRAFT, architectures=["PEagleDraftModel"], pard_token=151669)
FLAT, NESTED = 10000.0, {"rope_type": "default", "rope_theta": 1000000.0}

CASES: tuple[Case, ...] = (
    # --- which states are captured ---
    Case("vllm-project/vllm#42704", "DFlash ids taken for boundaries", ("CAP002",),
         served_as("layer_id", "layer-output"), served_as("layer_id + 1", "layer-output")),
    Case("microsoft/onnxruntime-genai#2538", "DFlash taps matched by equal numbers", ("CAP002",),
         served_as("layer_id", "layer-output"), served_as("layer_id + 1", "layer-output")),
    Case("Avarok-Cybersecurity/atlas#394", "DFlash ids moved down by one", ("CAP002",),
         served_as("layer_id - 1 + 1", "layer-output"), served_as("layer_id + 1", "layer-output")),
    Case("sgl-project/sglang#32204", "the last layer's output is asked for", ("CAP003",),
         project(ids([1, 17, 35]), MINI, engine="mini-sglang"), project(ids([1, 17, 32]), MINI, engine="mini-sglang")),
    Case("vllm-project/vllm#50170", "a head without ids is served the default", ("CAP001",),
         project(varied(DRAFT, eagle_config=NOTHING)), GOOD),
    Case("z-lab/dflash#157", "DFlash without target_layer_ids", ("CAP001",),
         project(dflash(target_layer_ids=NOTHING), checkpoint=DFLASH_CHECKPOINT), project(DFLASH, checkpoint=DFLASH_CHECKPOINT)),
    Case("vllm-project/speculators#440", "a trainer's default ids are not written back", ("CAP001",),
         project({"speculators_model_type": "dflash", "mask_token_id": 5, "aux_hidden_state_layer_ids": None}),
         project({"speculators_model_type": "dflash", "mask_token_id": 5, "aux_hidden_state_layer_ids": [2, 18, 33]})),
    Case("ggml-org/llama.cpp#18039", "a converter that ignores the config's ids", ("CFG001",),
         converted([24, 30, 36]), project(ids([23, 29, 35]), varied(MINI, num_hidden_layers=48), engine="mini-sglang")),
    Case("sgl-project/SpecForge#431", "Qwen3-VL's first states differ by the features of images", ("CAP007",),
         of_page("CAP007", "Served to a draft"), of_page("CAP007", "Later states")),
    Case("NVIDIA/Model-Optimizer#300", "the default formula on a target of four layers", ("CAP004",),
         project(ids([2, 2, 1]), varied(TARGET, num_hidden_layers=4)), project(ids([0, 1, 2]), varied(TARGET, num_hidden_layers=4))),
    Case("NVIDIA/Model-Optimizer#1271", "even spacing gives one layer several times", ("CAP004",),
         project(dflash(target_layer_ids=[1, 1, 1, 1])), project(dflash(target_layer_ids=[0, 1, 2, 3]))),
    Case("charlie12345/ROCmFPX#44", "a norm of the states is loaded and not applied", ("NRM001",),
         project(DFLASH, checkpoint={**DFLASH_CHECKPOINT, "enc.aux_norm.weight": "BF16 [4096]"}),
         project(DFLASH, checkpoint=DFLASH_CHECKPOINT)),
    # --- keys, classes, kinds ---
    Case("vllm-project/vllm#11672", "norms are kept that the checkpoint does not have", ("NRM006",),
         eagle_norms("input_layernorm", "norm"), eagle_norms()),
    Case("vllm-project/vllm#21086", "a norm at the end, over those before", ("NRM006",), eagle_norms("norm"), eagle_norms()),
    Case("vllm-project/vllm#47448", "an MTP head hands itself its state before the norm", ("NRM005",),
         of_page("NRM005", "A draft's steps"), of_page("NRM005", "A pair for the draft's steps")),
    Case("vllm-project/vllm#27688", "use_aux_hidden_state is not read", ("CFG006",),
         without_states("return True"), without_states('return eagle_config.get("use_aux_hidden_state", True)')),
    Case("sgl-project/sglang#21272", "EAGLE for an EAGLE-3 draft", ("CFG005",),
         project(DRAFT, launch=f"{SGLANG} --speculative-algorithm EAGLE --speculative-draft-model-path draft"),
         project(DRAFT, launch=f"{SGLANG} --speculative-algorithm EAGLE3 --speculative-draft-model-path draft")),
    Case("sgl-project/sglang#36528", "EAGLE3 without a draft loads the target as one", ("CFG005",),
         project(DRAFT, launch=f"{SGLANG} --speculative-algorithm EAGLE3"),
         project(DRAFT, launch=f"{SGLANG} --speculative-algorithm EAGLE3 --speculative-draft-model-path draft")),
    Case("vllm-project/vllm#25961", "ids at the top level that nobody reads", ("CFG001",),
         project({**varied(DRAFT, eagle_config=NOTHING), IDS: [1, 23, 30]}, MINI, engine="mini-sglang"),
         project(ids([1, 23, 30]), MINI, engine="mini-sglang")),
    Case("sgl-project/sglang#14920", "a section of the config that the engine does not read", ("CFG001",),
         project(varied(DRAFT, eagle_config=NOTHING, dflash_config={IDS: [1, 17, 30]}), MINI, engine="mini-sglang"),
         project(ids([1, 17, 30]), MINI, engine="mini-sglang")),
    Case("vllm-project/vllm#30987", "no architectures, and a key of its own", ("CFG004", "CFG002"),
         project({"model_type": "llama", "hidden_size": 4096, "vocab_size": 151936, "draft_vocab_size": 151936, "feature_layers": [34]}),
         GOOD),
    Case("vllm-project/vllm#24967", "EagleQwen2ForCausalLM is not registered", ("CFG004",),
         registered(("EagleLlamaForCausalLM",)), registered(("EagleLlamaForCausalLM", "EagleQwen2ForCausalLM"))),
    Case("sgl-project/sglang#33966", "drafts under the class of a whole model, with its depth", ("CFG004", "SHP002"),
         project(varied(DEEP, architectures=["LlamaForCausalLM"]), checkpoint=CHECKPOINT), project(DRAFT, checkpoint=CHECKPOINT)),
    Case("sgl-project/SpecForge#129", "EAGLE-3 supports one layer only", ("SHP002",),
         project(DEEP, checkpoint=CHECKPOINT), project(DRAFT, checkpoint=CHECKPOINT)),
    Case("vllm-project/vllm#56692", "a flag for sliding layers makes full ones causal", ("CFG008",),
         project(varied(DFLASH, layer_types=["sliding_attention", "full_attention"], sliding_window=2048, sliding_window_non_causal=False)),
         project(varied(DFLASH, layer_types=["full_attention"] * 2))),
    Case("ggml-org/llama.cpp#22105", "sliding layers that a converter does not know", ("CFG008",),
         project(varied(DFLASH, layer_types=["sliding_attention", "full_attention"], sliding_window=2048)),
         project(varied(DFLASH, layer_types=["full_attention"] * 2))),
    Case("InternLM/lmdeploy#4991", "a DFlash draft is run in fp16", ("DTY001",),
         project(DFLASH, varied(TARGET, torch_dtype="float16"), DFLASH_CHECKPOINT),
         project(DFLASH, varied(TARGET, torch_dtype="bfloat16"), DFLASH_CHECKPOINT)),
    Case("SafeAILab/EAGLE#291", "no draft_vocab_size where EAGLE-3 is chosen", ("CFG005",),
         project(varied(DRAFT, draft_vocab_size=NOTHING)), GOOD),
    Case("vllm-project/vllm#22333", "qwen is not on the list of targets that EAGLE-3 is let in for", ("SRV004",),
         listed("llama"), listed("llama", "qwen")),
    # --- shapes ---
    Case("SafeAILab/EAGLE#294", "all hidden states are joined, not three", ("CAT003",),
         joined("hidden_states"), joined("(hidden_states[2], hidden_states[18], hidden_states[33])")),
    Case("sgl-project/sglang#24215", "a draft model of its own with another width", ("SHP004",), alone(2048), alone(4096)),
    Case("vllm-project/vllm#18906", "a draft of another width without an embedding of its own", ("SHP004",),
         project(varied(DRAFT, hidden_size=6144, head_dim=128), checkpoint={
             **CHECKPOINT, "fc.weight": "BF16 [6144, 12288]", "midlayer.self_attn.q_proj.weight": "BF16 [4096, 12288]",
             "midlayer.self_attn.k_proj.weight": "BF16 [1024, 12288]"}),
         project(varied(DRAFT, hidden_size=6144, head_dim=128, target_hidden_size=4096), checkpoint={
             **CHECKPOINT, "fc.weight": "BF16 [6144, 12288]", "midlayer.self_attn.q_proj.weight": "BF16 [4096, 12288]",
             "midlayer.self_attn.k_proj.weight": "BF16 [1024, 12288]", "embed_tokens.weight": "BF16 [151936, 6144]"})),
    Case("vllm-project/speculators#636", "key-value heads by a constant", ("SHP003",),
         project(DRAFT, checkpoint={**CHECKPOINT, "midlayer.self_attn.k_proj.weight": "BF16 [4096, 8192]"}),
         project(varied(DRAFT, num_key_value_heads=32), checkpoint={**CHECKPOINT, "midlayer.self_attn.k_proj.weight": "BF16 [4096, 8192]"})),
    Case("vllm-project/vllm#43132", "the masked state is as wide as the draft", ("SHP007",),
         project(PARALLEL, checkpoint={**CHECKPOINT, "mask_hidden": "BF16 [1, 4096]"}),
         project(PARALLEL, checkpoint={**CHECKPOINT, "mask_hidden": "BF16 [1, 12288]"})),
    # --- weights ---
    Case("vllm-project/vllm#11126", "fc.bias without eagle_fc_bias", ("WGT005",),
         project(EAGLE, checkpoint=EAGLE_BIASED), project(varied(EAGLE, eagle_fc_bias=True), checkpoint=EAGLE_BIASED)),
    Case("vllm-project/vllm#8849", "fc.bias is loaded into fc.weight", ("WGT005",),
         project(varied(EAGLE, model_type="qwen2"), checkpoint={**EAGLE_BIASED, "layers.0.self_attn.q_proj.bias": "BF16 [4096]"}),
         project(varied(EAGLE, model_type="qwen2", eagle_fc_bias=True), checkpoint={**EAGLE_BIASED, "layers.0.self_attn.q_proj.bias": "BF16 [4096]"})),
    Case("lightseekorg/TorchSpec#38", "a random embedding is exported", ("WGT003",), embedded(5), embedded(0)),
    Case("sgl-project/SpecForge#140", "a tied head takes the target's shape", ("WGT004",),
         project(varied(DRAFT, draft_vocab_size=32000, tie_word_embeddings=True)),
         project(varied(DRAFT, draft_vocab_size=32000, tie_word_embeddings=False))),
    Case("vllm-project/speculators#74", "tie_weights overwrites the draft's head", ("WGT004",),
         project(varied(DRAFT, vocab_size=128256, draft_vocab_size=32000, tie_word_embeddings=True), varied(TARGET, vocab_size=128256)),
         project(varied(DRAFT, vocab_size=128256, draft_vocab_size=32000, tie_word_embeddings=False), varied(TARGET, vocab_size=128256))),
    Case("vllm-project/speculators#1038", "a final norm that no alias names", ("WGT006",),
         project(DRAFT, target__model_dot_safetensors_dot_index_dot_json=index("llm.embed_tokens.weight", "llm.norm.weight")),
         project(DRAFT, target__model_dot_safetensors_dot_index_dot_json=index("model.embed_tokens.weight", "model.norm.weight"))),
    Case("sgl-project/SpecForge#666", "fixed names and a target with a vision tower", ("WGT006",),
         project(DRAFT, target__model_dot_safetensors_dot_index_dot_json=index("model.language_model.embed_tokens.weight", "lm_head.weight")),
         project(DRAFT, target__model_dot_safetensors_dot_index_dot_json=index("model.embed_tokens.weight", "lm_head.weight"))),
    Case("vllm-project/vllm#28549", "the draft's own head is overwritten by the target's", ("WGT002",),
         of_page("WGT002", "Example"), of_page("WGT002", "Use instead")),
    Case("vllm-project/vllm#29926", "a head that is noted and never loaded", ("WGT002",),
         of_page("WGT002", "Left out and kept"), of_page("WGT002", "Use instead")),
    Case("vllm-project/vllm#18909", "a map that is asked for by its old name", ("WGT002",),
         of_page("WGT002", "Asked for by its old name"), of_page("WGT002", "A head of another size")),
    # --- vocabulary ---
    Case("NVIDIA-NeMo/Automodel#2447", "the map is not in the checkpoint", ("VOC001",), mapped({}), MAPPED),
    Case("verl-project/verl-SpeCo#66", "a map that keeps the first tokens", ("VOC002",),
         mapped({"d2t": {"I64": [0, 0, 0, 0]}, "t2d": bits(0, 1, 2, 3)}), MAPPED),
    Case("vllm-project/speculators#1081", "a cached map of another size", ("VOC001",),
         mapped({"d2t": OFFSETS, "t2d": {"BOOL": [0, 0, 1, 0, 0, 1, 0, 0]}}), MAPPED),
    Case("sgl-project/SpecForge#76", "a map that is shorter than the draft's vocabulary", ("VOC001",),
         mapped({"d2t": OFFSETS}, varied(SMALL, draft_vocab_size=6)), MAPPED),
    Case("vllm-project/vllm#43369", "the check of vocabularies is left out", ("VOC003",),
         project(varied(DRAFT, vocab_size=128256, draft_vocab_size=32000)), project(varied(DRAFT, draft_vocab_size=32000))),
    Case("sgl-project/sglang#23838", "any vocabulary is accepted", ("VOC006",),
         tokenizers(tokenizer("a", "b", "c", "d"), tokenizer("a", "c", "b", "d")),
         tokenizers(tokenizer("a", "b", "c", "d"), tokenizer("a", "b", "c", "d"))),
    Case("ggml-org/llama.cpp#3812", "vocabularies of 152064 and 32002 tokens", ("VOC003",),
         project(varied(DRAFT, vocab_size=32002, draft_vocab_size=NOTHING, architectures=["LlamaForCausalLMEagle"], eagle_config=NOTHING), varied(TARGET, vocab_size=152064)),
         project(varied(DRAFT, vocab_size=152064, draft_vocab_size=NOTHING, architectures=["LlamaForCausalLMEagle"], eagle_config=NOTHING), varied(TARGET, vocab_size=152064))),
    Case("vllm-project/speculators#188", "the draft's size under the key of the whole vocabulary", ("VOC003",),
         project({**varied(DRAFT, vocab_size=32000, draft_vocab_size=32000)}), project(varied(DRAFT, draft_vocab_size=32000))),
    Case("vllm-project/speculators#393", "a mask token that the tokenizer has", ("VOC005",), mask(128255), mask(128300)),
    # --- positions ---
    Case("NVIDIA/Model-Optimizer#2221", "a base from the default of the class", ("ROP001",),
         project(varied(DRAFT, rope_theta=FLAT, rope_parameters=NESTED), varied(TARGET, rope_parameters=NESTED)),
         project(varied(DRAFT, rope_parameters=NESTED), varied(TARGET, rope_parameters=NESTED))),
    Case("vllm-project/speculators#574", "a converter drops the scaling", ("ROP002",),
         project(varied(DRAFT, max_position_embeddings=131072, rope_theta=5e5), varied(TARGET, max_position_embeddings=131072, rope_theta=5e5, rope_scaling=LLAMA3)),
         project(varied(DRAFT, max_position_embeddings=131072, rope_theta=5e5, rope_scaling=LLAMA3), varied(TARGET, max_position_embeddings=131072, rope_theta=5e5, rope_scaling=LLAMA3))),
    Case("vllm-project/vllm#51092", "plain positions are taken for yarn", ("ROP002",),
         project(varied(DRAFT, kv_lora_rank=512, rope_parameters=NESTED)), project(varied(DRAFT, kv_lora_rank=512, rope_theta=1000000.0))),
    Case("vllm-project/vllm#48894", "a draft of 2048 positions: device assertion", ("ROP003",), long(2048), long(131072)),
    Case("sgl-project/sglang#10787", "the same in SGLang: illegal access", ("ROP003",), long(2048, 8192), long(8192, 8192)),
    Case("sgl-project/sglang#6783", "slower than without a draft past 2048 tokens", ("ROP003",), long(2048), long(131072)),
    Case("vllm-project/vllm#57964", "a context that the command extends", ("ROP003",),
         replace(long(131072), files={**long(131072).files, "serve.sh": f"{VLLM} --max-model-len 393216"}, command=(*long(1).command, "--launch", "serve.sh")),
         replace(long(393216), files={**long(393216).files, "serve.sh": f"{VLLM} --max-model-len 393216"}, command=(*long(1).command, "--launch", "serve.sh"))),
    Case("NVIDIA-NeMo/RL#3960", "acceptance breaks down past 2048 tokens", ("ROP003",), long(2048, 262144), long(262144, 262144)),
    Case("sgl-project/SpecForge#193", "a template with a short context", ("ROP003",), long(32768, 128000), long(128000, 128000)),
    # --- stages and types ---
    Case("vllm-project/vllm#45985", "states of all stages but the last are dropped", ("PAR002",),
         project(DRAFT, launch=f"{VLLM} --pipeline-parallel-size 2"), project(DRAFT, launch=f"{VLLM} --tensor-parallel-size 2")),
    Case("sgl-project/sglang#39634", "capture under pipeline stages", ("PAR002",),
         project(DRAFT, launch=f"{SGLANG} --pp-size 2 --speculative-algorithm EAGLE3 --speculative-draft-model-path draft"),
         project(DRAFT, launch=f"{SGLANG} --tp-size 2 --speculative-algorithm EAGLE3 --speculative-draft-model-path draft")),
    Case("RBLN-SW/vllm-rbln#1006", "stages for one class of target only", ("PAR002",),
         project(DRAFT, launch=f"{VLLM} -pp 4"), project(DRAFT, launch=f"{VLLM} -tp 4")),
    Case("vllm-project/vllm#24505", "the draft's cache under fp8", ("DTY003",),
         project(DRAFT, launch=f"{VLLM} --kv-cache-dtype fp8"), project(DRAFT, launch=VLLM)),
    Case("vllm-project/vllm#55250", "DFlash2 in fp16: nothing accepted", ("DTY001",),
         project(varied(DFLASH, torch_dtype=None), checkpoint=DFLASH_CHECKPOINT, launch=f"{SGLANG} --dtype float16 --speculative-algorithm DFLASH --speculative-draft-model-path draft"),
         project(varied(DFLASH, torch_dtype=None), checkpoint=DFLASH_CHECKPOINT, launch=f"{SGLANG} --dtype bfloat16 --speculative-algorithm DFLASH --speculative-draft-model-path draft")),
    Case("vllm-project/vllm#25883", "a draft inherits its verifier's quantisation", ("DTY002",),
         of_page("DTY002", "Built as the target is"), of_page("DTY002", "Built as the draft is")),
    Case("sgl-project/sglang#23146", "layers for prediction in bf16 below a quantised target", ("DTY002",),
         project(NEXTN, checkpoint=NEXTN_CHECKPOINT),
         project(varied(NEXTN, quantization_config={**QUARK, "exclude": ["lm_head", "model.layers.61"]}), checkpoint=NEXTN_CHECKPOINT)),
)  # fmt: skip

RIGHT: tuple[Right, ...] = (
    Right("NickL77/BaldEagle#18", "do HF's index and the loop's index differ by the embedding?", "CAP002",
          dumped(2, 18, 33), dumped(1, 17, 32)),
    Right("SafeAILab/EAGLE#222", "d2t is zero throughout", "VOC002",
          mapped({"d2t": {"I64": [0] * 16}, "t2d": bits(*range(16))}, varied(SMALL, draft_vocab_size=16)),
          mapped({"d2t": {"I64": [0] * 4}, "t2d": bits(*range(4))})),
)  # fmt: skip

MISSED: tuple[Missed, ...] = (
    Missed("vllm-project/vllm#39775", "a draft with another number of heads than its target",
           "some releases plan attention by the target's heads; that is not followed into each backend's plan"),
    Missed("sgl-project/sglang#4351", "an AWQ target and a plain draft",
           "the report does not say what is wrong; a --quantization that is handed on to the draft, one way to it, is found (DTY002)"),
)  # fmt: skip
