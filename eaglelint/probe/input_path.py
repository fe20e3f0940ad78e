"""A draft's input path as engines build it: each weight with its shape by the config, and what the checkpoint holds.

Read in SGLang 0.5.23 and vLLM 0.33.0 (``llama_eagle3.py``, ``llama_eagle.py``, ``dflash.py``, ``qwen3_dflash.py``) and
SGLang 0.5.9 (``llama_eagle3.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eaglelint.artifacts.checkpoint import Checkpoint, Tensor
from eaglelint.artifacts.decoder_layers import first_layer, layers_of
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.rule import Facts

__all__ = ["Feed", "InputPath", "Projection", "Weight", "feeds", "input_path"]

_JOINED = frozenset({"eagle3", "peagle"})
_DFLASH_FAMILY = frozenset({"dflash", "dspark", "domino"})
_SECTIONS = ("eagle_config", "dflash_config")
_DEFAULT_STATES = 3
# Attention whose projections do not have heads x head_dim rows: latent (DeepSeek), and heads that differ by layer.
_OTHER_HEADS = ("kv_lora_rank", "v_head_dim", "swa_num_key_value_heads", "swa_head_dim", "global_head_dim")
_GATED = ("qwen3_next", "qwen3_5")
# The first projections of latent attention: they read the layer's input.
_LATENT = ("self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.fused_qkv_a_proj_with_mqa")
# One norm for each state before fc: the names in use, and the older ones that SGLang translates.
_STATE_NORMS = (("fc_norm.{}.weight", None), ("aux_norm_{}.weight", ("low", "mid", "high")))


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter: the shape an engine builds it with, and the checkpoint's tensor where it holds one.

    ``shape`` is the checkpoint's own where the config does not tell another.
    """

    name: str
    shape: tuple[int, ...]
    tensor: Tensor | None = None

    @property
    def loaded(self) -> tuple[int, ...] | None:
        """The checkpoint's shape; ``None`` where it has no such tensor, or a packed one."""
        return self.tensor.shape if self.tensor is not None and self.tensor.is_plain else None


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection of the first layer; its rows are ``heads`` of ``size`` where the config tells so."""

    weight: Weight
    heads: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """What reaches the draft: ``states`` captured states of ``width``, and the features that ``fc`` is built for.

    ``by`` names the engine that was interpreted; empty where only the configs were read.
    """

    states: int
    width: int
    takes: int | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class InputPath:
    """All that a captured state and a token pass through before the first layer's attention, and the head at the end.

    Attributes:
        kind: The kind of draft.
        joined: The first layer takes embedding and state side by side (EAGLE-3).
        width: The draft's ``hidden_size``.
        feed: What it is fed.
        fc: The projection of the states; ``None`` where an engine leaves it out.
        refusal: What an engine says when it builds this draft at all, and which one.
        d2t: Offsets from the draft's tokens to the target's; ``vocabulary`` is the size of the target's.
        layers: Decoder layers by the config, and the numbers of those in the checkpoint.
        notes: What could not be tried.
    """

    kind: str
    joined: bool
    width: int
    feed: Feed
    fc: Weight | None
    state_norms: tuple[Weight, ...] = ()
    joined_norm: Weight | None = None
    mask_hidden: Weight | None = None
    embedding: Weight | None = None
    hidden_norm: Weight | None = None
    input_norm: Weight | None = None
    projections: tuple[Projection, ...] = ()
    output: Weight | None = None
    norm: Weight | None = None
    head: Weight | None = None
    d2t: Sequence[int] | None = None
    vocabulary: int | None = None
    layers: tuple[int | None, frozenset[int]] = (None, frozenset())
    refusal: str = ""
    dtype: str = "BF16"
    notes: tuple[str, ...] = ()


def feeds(facts: Facts) -> tuple[Feed, ...]:
    """What each engine feeds the draft, as derived from its source; else what the configs say."""
    draft = facts.draft
    assert draft is not None
    width = _target_number(facts, "hidden_size") or _number(draft, "target_hidden_size", "hidden_size")
    if width is None:
        return ()
    derived = {
        Feed(len(wiring.slots), width, fc.in_features, wiring.name)
        for served in facts.servings
        if (wiring := served.wiring).status == "exact" and (fc := wiring.fc) is not None
    }
    if derived:
        return tuple(sorted(derived, key=lambda feed: feed.by))
    return (Feed(_count(draft, facts.checkpoint, width), width),)


def input_path(facts: Facts, feed: Feed) -> InputPath | str:
    """The path for one feed; a sentence where there is none to build."""
    draft, checkpoint = facts.draft, facts.checkpoint
    assert draft is not None
    if draft.embedded or draft.kind in ("mtp", "unknown"):
        return f"{draft.path}: the input path of {draft.kind} drafts is not built."
    width = _number(draft, "hidden_size")
    if width is None or width <= 0:
        return f"{draft.path}: it says no hidden_size, so no input path can be built."
    return _Builder(facts, draft, checkpoint, feed, width).build()


@dataclass(frozen=True, slots=True)
class _Builder:
    facts: Facts
    draft: DraftConfig
    checkpoint: Checkpoint | None
    feed: Feed
    width: int

    def build(self) -> InputPath:
        draft, width = self.draft, self.width
        layer = {} if self.checkpoint is None else first_layer(self.checkpoint)
        joined = draft.kind in _JOINED
        family = draft.kind in _DFLASH_FAMILY
        fc = self._fc()
        takes = self._takes()
        inside = 2 * width if joined else width
        vocabulary = _number(draft, "vocab_size")
        small = _number(draft, "draft_vocab_size") or vocabulary
        packed = [] if self.checkpoint is None else [t for t in self.checkpoint.tensors.values() if not t.is_plain]
        return InputPath(
            kind=draft.kind,
            joined=joined,
            width=width,
            feed=self.feed,
            fc=fc,
            state_norms=tuple(self._state_norms()) if not family else (),
            joined_norm=self._weight("input_norm.weight", (takes,)) if self._on("norm_before_fc") else None,
            mask_hidden=self._weight("mask_hidden", (1, takes)) if self._has("mask_hidden") else None,
            embedding=self._embedding(vocabulary),
            hidden_norm=self._norm(layer, "hidden_norm.weight") if joined else self._outer_norm(family),
            input_norm=None if draft.kind == "eagle" else self._norm(layer, "input_layernorm.weight"),
            projections=tuple(self._projections(layer, inside)),
            output=self._output(layer),
            norm=self._weight("norm.weight", (width,)),
            head=self._weight("lm_head.weight", (small, width)) if small and self._has("lm_head.weight") else None,
            d2t=None if self.checkpoint is None else self.checkpoint.map_of("d2t"),
            vocabulary=vocabulary or _target_number(self.facts, "vocab_size"),
            layers=(
                _number(draft, "num_hidden_layers"),
                layers_of(self.checkpoint) if self.checkpoint is not None and self.checkpoint.complete else frozenset(),
            ),
            refusal=self._refusal(),
            dtype=self._dtype(),
            notes=(f"{packed[0].name} and others are stored as {packed[0].dtype}: they take the shape of the config",)
            if any(t.name.endswith(".weight") for t in packed)
            else (),
        )

    def _find(self, name: str) -> Tensor | None:
        return None if self.checkpoint is None else self.checkpoint.find(name)

    def _has(self, name: str) -> bool:
        return self._find(name) is not None

    def _weight(self, name: str, shape: tuple[int, ...]) -> Weight:
        tensor = self._find(name)
        return Weight(name if tensor is None else tensor.name, shape, tensor)

    def _norm(self, layer: Mapping[str, Tensor], name: str) -> Weight:
        tensor = layer.get(name)
        return Weight(name if tensor is None else tensor.name, (self.width,), tensor)

    def _outer_norm(self, family: bool) -> Weight | None:
        """DFlash norms what comes out of fc, before any layer."""
        return self._weight("hidden_norm.weight", (self.width,)) if family else None

    def _on(self, *flags: str) -> bool:
        holders = (*(self.draft.data.get(section) for section in _SECTIONS), self.draft.data)
        return any(isinstance(holder, dict) and holder.get(flag) is True for holder in holders for flag in flags)

    def _takes(self) -> int:
        """Features that an engine builds fc for: the draft class's own number, else count times the stated width."""
        if self.feed.takes is not None:
            return self.feed.takes
        stated = _number(self.draft, "target_hidden_size")
        if stated is None:
            # DFlash classes ask the target for its width, EAGLE-3's take their own.
            stated = self.feed.width if self.draft.kind in _DFLASH_FAMILY else self.width
        return stated * self.feed.states

    def _fc(self) -> Weight | None:
        if self.draft.kind == "eagle":
            return self._weight("fc.weight", (self.width, 2 * self.width))
        if _switched_off(self.draft):
            return None
        takes = self._takes()
        # SGLang leaves fc out where the states are as wide as the embedding.
        if takes == self.width == self.feed.states * self.feed.width and not self._has("fc.weight"):
            return None
        return self._weight("fc.weight", (self.width, takes))

    def _state_norms(self) -> Iterator[Weight]:
        if not self._on("fc_norm", "use_aux_norm") or not self.feed.states:
            return
        each = self._takes() // self.feed.states
        for index in range(self.feed.states):
            names = [
                name.format(index if words is None else words[index])
                for name, words in _STATE_NORMS
                if words is None or index < len(words)
            ]
            yield self._weight(next((name for name in names if self._has(name)), names[0]), (each,))

    def _embedding(self, vocabulary: int | None) -> Weight:
        """The draft's own; else the target's, which engines share, and which is as wide as the target."""
        own = self._find("embed_tokens.weight")
        listed = self.checkpoint is not None and self.checkpoint.name_of("embed_tokens.weight") is not None
        rows = vocabulary or _target_number(self.facts, "vocab_size") or 1
        if own is not None or listed or self.checkpoint is None or not self.checkpoint.complete:
            return Weight("embed_tokens.weight" if own is None else own.name, (rows, self.width), own)
        return Weight("the target's embed_tokens.weight", (rows, self.feed.width))

    def _projections(self, layer: Mapping[str, Tensor], inside: int) -> Iterator[Projection]:
        heads, groups, size = self._heads()
        for name, count in (("q_proj", heads), ("k_proj", groups), ("v_proj", groups)):
            tensor = layer.get(f"self_attn.{name}.weight")
            if tensor is None:
                if (
                    count is not None
                    and size is not None
                    and not any(f"{latent}.weight" in layer for latent in _LATENT)
                ):
                    yield Projection(Weight(f"self_attn.{name}.weight", (count * size, inside)), count, size)
                continue
            rows = count * size if count is not None and size is not None else tensor.shape[0] if tensor.shape else 0
            yield Projection(Weight(tensor.name, (rows, inside), tensor), count, size)
        for name in _LATENT:
            tensor = layer.get(f"{name}.weight")
            if tensor is not None and tensor.shape:
                yield Projection(Weight(tensor.name, (tensor.shape[0], inside), tensor))

    def _output(self, layer: Mapping[str, Tensor]) -> Weight | None:
        heads, _, size = self._heads()
        tensor = layer.get("self_attn.o_proj.weight")
        if tensor is None or heads is None or size is None:
            return None
        return Weight(tensor.name, (self.width, heads * size), tensor)

    def _heads(self) -> tuple[int | None, int | None, int | None]:
        """Heads, key-value heads and their size; unknown for gated and latent attention."""
        family = self.draft.text_node("model_type")
        gate = self.draft.text_node("attn_output_gate")
        heads = _number(self.draft, "num_attention_heads")
        if (
            not heads
            or any(self.draft.text_node(key) is not None for key in _OTHER_HEADS)
            or (gate is not None and gate.value is True)
            or (family is not None and str(family.value).startswith(_GATED))
        ):
            return None, None, None
        groups = _number(self.draft, "num_key_value_heads")
        size = _number(self.draft, "head_dim")
        return heads, heads if groups is None else groups, self.width // heads if size is None else size

    def _refusal(self) -> str:
        """A depth that only the config bears out, and that is the target's: SGLang took one layer and no more."""
        depth, target = _number(self.draft, "num_hidden_layers"), self.facts.target
        if self.draft.kind != "eagle3" or target is None or depth is None or depth <= 1 or depth != target.num_layers:
            return ""
        borne_out = self.checkpoint is not None and bool(layers_of(self.checkpoint))
        return "" if borne_out else "EAGLE3 currently only supports 1 layer"

    def _dtype(self) -> str:
        found = self._find("fc.weight") or self._find("norm.weight")
        if found is not None and found.is_plain:
            return found.dtype
        stated = str(self.draft.data.get("torch_dtype") or self.draft.data.get("dtype") or "")
        return {"float16": "F16", "float32": "F32", "float64": "F64"}.get(stated.removeprefix("torch."), "BF16")


def _count(draft: DraftConfig, checkpoint: Checkpoint | None, width: int) -> int:
    """How many states reach the draft: stated, else the ids; of several lists the one that the checkpoint fits."""
    if draft.kind == "eagle" or _switched_off(draft):
        return 1
    stated = _number(draft, "num_aux_hidden_states")
    if stated is not None:
        return stated
    fc = None if checkpoint is None else checkpoint.find("fc.weight")
    taken = fc.shape[1] if fc is not None and fc.is_plain and len(fc.shape) == 2 else None
    counts = [len(ids.values) for ids in draft.layer_ids]
    if not counts and draft.kind in _DFLASH_FAMILY and taken is not None and taken >= width:
        return taken // width
    return next((count for count in counts if count * width == taken), counts[0] if counts else _DEFAULT_STATES)


def _switched_off(draft: DraftConfig) -> bool:
    """Such a draft takes the last state alone, and no fc."""
    section = draft.data.get("eagle_config")
    return any(
        isinstance(holder, dict) and holder.get("use_aux_hidden_state") is False for holder in (draft.data, section)
    )


def _number(draft: DraftConfig, *keys: str) -> int | None:
    for key in keys:
        for node in (draft.text_node(key), *(draft.node(section, key) for section in _SECTIONS)):
            if node is not None and type(node.value) is int:
                return node.value
    return None


def _target_number(facts: Facts, key: str) -> int | None:
    value = None if facts.target is None else facts.target.text_value(key)
    return value if type(value) is int and value > 0 else None
