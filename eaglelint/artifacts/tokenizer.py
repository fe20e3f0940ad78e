"""What lies beside a config of its tokenizer: the tokens that were added, and the map from tokens to ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["Tokenizer", "TokenizerPair", "compare_tokenizers", "read_tokenizer"]

MAX_CONFIG_BYTES = 4 * 1024 * 1024
MAX_TOKENIZER_BYTES = 40 * 1024 * 1024
"""Largest ``tokenizer.json`` that is compared; Gemma's has 33 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokenizer:
    """The small part of a tokenizer.

    Attributes:
        path: Its configuration, as messages name it.
        added: The content of each token that stands beside the trained vocabulary, by id.
    """

    path: str
    added: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """Two tokenizers that are not the same.

    Attributes:
        draft: The draft's ``tokenizer.json``.
        target: The target's.
        moved: How many tokens both know and number differently.
        common: How many tokens both know.
        sizes: How many tokens each knows.
        example: One that is numbered differently: its content and both ids.
    """

    draft: str
    target: str
    moved: int
    common: int
    sizes: tuple[int, int]
    example: tuple[str, int, int] | None


def read_tokenizer(config: Path, display: str) -> Tokenizer | None:
    """The tokens that ``tokenizer_config.json`` beside a config adds; ``None`` where there is none."""
    path = config.parent / "tokenizer_config.json"
    data = _json(path, MAX_CONFIG_BYTES)
    found = data.get("added_tokens_decoder") if isinstance(data, dict) else None
    if not isinstance(found, dict):
        return None
    added = {
        int(number): str(entry["content"])[:80]
        for number, entry in found.items()
        if number.isascii() and number.isdecimal() and len(number) < 10
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    }
    return Tokenizer(str(PurePosixPath(display).parent / path.name), added)


def compare_tokenizers(draft: Path, target: Path, shown_draft: str, shown_target: str) -> TokenizerPair | None:
    """How the tokenizers beside two configs differ; ``None`` where they are the same or one is not there."""
    paths = [config.parent / "tokenizer.json" for config in (draft, target)]
    try:
        if not all(path.is_file() and path.stat().st_size <= MAX_TOKENIZER_BYTES for path in paths):
            return None
        texts = [path.read_bytes() for path in paths]
    except OSError:
        return None
    if hashlib.sha256(texts[0]).digest() == hashlib.sha256(texts[1]).digest():
        return None
    maps = [_ids(text) for text in texts]
    left, right = maps
    if not left or not right:
        return None
    common = left.keys() & right.keys()
    moved = sorted((left[token], token) for token in common if left[token] != right[token])
    if not moved and len(left) == len(right) == len(common):
        return None
    example = (moved[0][1][:40], left[moved[0][1]], right[moved[0][1]]) if moved else None
    shown = [str(PurePosixPath(display).parent / "tokenizer.json") for display in (shown_draft, shown_target)]
    return TokenizerPair(shown[0], shown[1], len(moved), len(common), (len(left), len(right)), example)


def _ids(text: bytes) -> dict[str, int]:
    """Tokens and their ids in a ``tokenizer.json``: of the model (a map, or a list of pairs) and the added ones."""
    data = _parse(text)
    model = data.get("model") if isinstance(data, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    found: dict[str, int] = {}
    if isinstance(vocabulary, dict):
        found.update({token: number for token, number in vocabulary.items() if type(number) is int})
    elif isinstance(vocabulary, list):
        found.update(
            {
                entry[0]: number
                for number, entry in enumerate(vocabulary)
                if isinstance(entry, list) and entry and isinstance(entry[0], str)
            }
        )
    added = data.get("added_tokens") if isinstance(data, dict) else None
    for entry in added if isinstance(added, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("content"), str) and type(entry.get("id")) is int:
            found[entry["content"]] = entry["id"]
    return found


def _json(path: Path, limit: int) -> Any:
    try:
        if not path.is_file() or path.stat().st_size > limit:
            return None
        return _parse(path.read_bytes())
    except OSError:
        return None


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
