"""A target's config: how many decoder layers the draft's boundaries are counted against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eaglelint.artifacts.document import Document, Node, config_path, read_document
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.finding import Span

__all__ = ["LAYER_COUNT_KEYS", "MAX_LAYERS", "TEXT_CONFIG_PATHS", "TargetConfig", "is_target_config", "read_target"]

TEXT_CONFIG_PATHS: tuple[tuple[str, ...], ...] = (
    ("thinker_config", "text_config"),  # Qwen-Omni
    ("text_config",),  # transformers; Kimi-K2.5, Gemma, Qwen-VL
    ("llm_config",),  # InternVL
    ("language_config",),  # DeepSeek-VL2, Janus
    ("thinker_config",),
    (),
)
"""Where a model keeps its language model, in the order in which SGLang and vLLM look (``get_hf_text_config``).

The top level comes last: where both hold a layer count, the engines build the language model from the nested one.
"""

LAYER_COUNT_KEYS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
"""Spellings of the number of decoder layers: nearly all; ChatGLM; GPT-2, BLOOM, Falcon; MPT, DBRX."""

MAX_LAYERS = 10_000
"""A layer count above this is a mistake or an attack; the deepest public models have some hundred."""


@dataclass(frozen=True, slots=True, eq=False)
class TargetConfig:
    """What a target's config says.

    Attributes:
        path: The path to show in messages.
        document: The document, for places; ``None`` where the target was given by flags.
        data: The same as plain data.
        architectures: The target's classes as written.
        num_layers: N, the number of decoder layers.
        num_layers_path: The key path that says so; empty where the target was given by flags.
        num_layers_span: The place of that number.
        text_path: The key path of the language model's own config; empty where that is the whole.
    """

    path: str
    document: Document | None
    data: dict[str, Any]
    architectures: tuple[str, ...]
    num_layers: int
    num_layers_path: tuple[str, ...] = ()
    num_layers_span: Span | None = None
    text_path: tuple[str, ...] = field(default=())

    @classmethod
    def synthetic(cls, num_layers: int, architectures: tuple[str, ...] = ()) -> TargetConfig:
        """A target of which only the depth is known, for ``--num-layers``.

        Raises:
            WrongUsage: The depth is not one that a model can have.
        """
        if not 0 < num_layers <= MAX_LAYERS:
            raise WrongUsage(f"--num-layers {num_layers} is no layer count. Give one from 1 to {MAX_LAYERS}.")
        data: dict[str, Any] = {"num_hidden_layers": num_layers}
        if architectures:
            data["architectures"] = list(architectures)
        for path in TEXT_CONFIG_PATHS:
            # A wrapper's language model is as deep, wherever it keeps its config.
            section = data
            for key in path:
                section = section.setdefault(key, {"num_hidden_layers": num_layers})
        return cls("--num-layers", None, data, architectures, num_layers)

    @classmethod
    def from_document(cls, document: Document) -> TargetConfig:
        """Read a target's config that is a JSON object.

        Raises:
            UnreadableInput: No layer count was found, or it is no number of layers.
        """
        data = document.data if isinstance(document.data, dict) else {}
        key_path, value = _layer_count(data)
        if not key_path:
            keys = ", ".join(LAYER_COUNT_KEYS)
            places = ", ".join(".".join(path) for path in TEXT_CONFIG_PATHS if path)
            raise UnreadableInput(
                f"{document.path}: no layer count found. Looked for {keys} at the top level and in {places}. "
                "Name the target's config.json, or give the depth with --num-layers."
            )
        span = document.span(*key_path)
        if type(value) is not int or not 0 < value <= MAX_LAYERS:
            raise UnreadableInput(
                f"{span}: {'.'.join(key_path)} is no layer count. "
                f"Expected an integer from 1 to {MAX_LAYERS}; mend it, or give the depth with --num-layers."
            )
        return cls(
            path=document.path,
            document=document,
            data=data,
            architectures=_architectures(data, key_path[:-1]),
            num_layers=value,
            num_layers_path=key_path,
            num_layers_span=span,
            text_path=key_path[:-1],
        )

    @property
    def text_architectures(self) -> tuple[str, ...]:
        """The classes of the language model inside, where a multimodal target names them."""
        return _classes(_descend(self.data, self.text_path)) if self.text_path else self.architectures

    def text_node(self, key: str) -> Node | None:
        """A value of the language model (``hidden_size``, ``vocab_size``), else the top level's of that name."""
        if self.document is None:
            return None
        node = self.document.find(*self.text_path, key)
        return node if node is not None and node.value is not None else self.document.find(key)

    def text_value(self, key: str) -> Any:
        """The plain value of :meth:`text_node`; ``None`` where there is none."""
        node = self.text_node(key)
        return self.data.get(key) if node is None else node.value

    def span(self, *key_path: str) -> Span | None:
        """The place of a value or of what is around it; ``None`` where the target was given by flags."""
        return None if self.document is None else self.document.span(*key_path)


def read_target(path: Path, display: str) -> TargetConfig:
    """Read a target's config.

    Args:
        path: The config, or a model directory that holds a ``config.json``.
        display: How messages name it.

    Raises:
        UnreadableInput: It is missing, not JSON, no object, or says no layer count.
    """
    return TargetConfig.from_document(read_document(*config_path(path, display)))


def is_target_config(data: object) -> bool:
    """Whether parsed JSON is a language model's config: it names a class or type, and a layer count."""
    if not isinstance(data, Mapping):
        return False
    key_path, value = _layer_count(data)
    if type(value) is not int or not 0 < value <= MAX_LAYERS:
        return False
    return bool(_architectures(data, key_path[:-1])) or isinstance(data.get("model_type"), str)


def _layer_count(data: Mapping[str, Any]) -> tuple[tuple[str, ...], Any]:
    """The key path and the value of the layer count; an empty path where there is none."""
    for holder_path, holder in _text_configs(data):
        for key in LAYER_COUNT_KEYS:
            if holder.get(key) is not None:
                return (*holder_path, key), holder[key]
    return (), None


def _text_configs(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for path in TEXT_CONFIG_PATHS:
        holder = _descend(data, path)
        if isinstance(holder, Mapping):
            yield path, holder


def _descend(data: Mapping[str, Any], path: tuple[str, ...]) -> object:
    value: object = data
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _architectures(data: Mapping[str, Any], text_path: tuple[str, ...]) -> tuple[str, ...]:
    return _classes(data) or _classes(_descend(data, text_path))


def _classes(holder: object) -> tuple[str, ...]:
    classes = holder.get("architectures") if isinstance(holder, Mapping) else None
    return tuple(name for name in classes if isinstance(name, str)) if isinstance(classes, list) else ()
