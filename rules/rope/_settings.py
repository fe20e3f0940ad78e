"""Rotary settings of a config, wherever the release of transformers that wrote it keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eaglelint.artifacts.document import Node
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Span

__all__ = ["RopeBase", "bases_of", "bases_of_target", "scaling_of", "scaling_of_target", "type_of"]

# transformers 4 keeps rope_theta flat and the scaling in rope_scaling; transformers 5 keeps both in rope_parameters.
_SECTIONS = ("rope_parameters", "rope_scaling")


@dataclass(frozen=True, slots=True)
class RopeBase:
    """The base of the rotary embedding as one place of a config states it."""

    key: str
    value: float
    node: Node

    @property
    def span(self) -> Span:
        return self.node.span


def bases_of(draft: DraftConfig) -> tuple[RopeBase, ...]:
    """Every place of a draft's config that states the base, the flat one first."""
    return tuple(_bases(draft.text_node("rope_theta"), [draft.text_node(section) for section in _SECTIONS]))


def bases_of_target(target: TargetConfig | None) -> tuple[RopeBase, ...]:
    if target is None:
        return ()
    return tuple(_bases(target.text_node("rope_theta"), [target.text_node(section) for section in _SECTIONS]))


def _bases(flat: Node | None, sections: list[Node | None]) -> Iterator[RopeBase]:
    if flat is not None and _is_number(flat.value):
        yield RopeBase("rope_theta", flat.value, flat)
    for key, section in zip(_SECTIONS, sections, strict=True):
        node = None if section is None else section.get("rope_theta")
        if node is not None and _is_number(node.value):
            yield RopeBase(f"{key}.rope_theta", node.value, node)


def scaling_of(draft: DraftConfig) -> Node | None:
    """The object that says how positions are scaled."""
    return _first_object(draft.text_node(section) for section in ("rope_scaling", "rope_parameters"))


def scaling_of_target(target: TargetConfig | None) -> Node | None:
    if target is None:
        return None
    return _first_object(target.text_node(section) for section in ("rope_scaling", "rope_parameters"))


def _first_object(nodes: Iterator[Node | None]) -> Node | None:
    return next((node for node in nodes if node is not None and node.kind == "object"), None)


def type_of(scaling: Node | None) -> str | None:
    """``rope_type``, or ``type`` as it was called before transformers 4.45."""
    for key in ("rope_type", "type"):
        node = None if scaling is None else scaling.get(key)
        if node is not None and isinstance(node.value, str):
            return node.value
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
