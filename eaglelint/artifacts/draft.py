"""A draft's config: every list of layer ids in it, its kind and its dialect, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eaglelint.artifacts.document import Document, Node, config_path, read_document
from eaglelint.artifacts.draft_kinds import (
    IDS_KEYS,
    Dialect,
    DraftKind,
    is_draft_config,
    is_embedded_draft,
    recognise_dialect,
    recognise_kind,
)
from eaglelint.finding import Span

__all__ = [
    "Dialect",
    "DraftConfig",
    "DraftKind",
    "DraftLayerIds",
    "MalformedIds",
    "is_draft_config",
    "is_embedded_draft",
    "read_draft",
]

# Where the draft's own shape stands: at the top level, else below one of these.
_SHAPE_PARENTS = ("transformer_layer_config", "text_config", "model")
_EAGLE_PARENTS = ("eagle_config", "dflash_config")


@dataclass(frozen=True, slots=True)
class DraftLayerIds:
    """A list of layer ids in a draft's config.

    Attributes:
        key_path: The keys that lead to it; an index where a list is passed through.
        values: The ids as written, in their order, duplicates kept.
        span: The list, brackets included.
        item_spans: One place for each id.
        key_span: The last key, quotes included.
    """

    key_path: tuple[str, ...]
    values: tuple[int, ...]
    span: Span
    item_spans: tuple[Span, ...]
    key_span: Span

    def __str__(self) -> str:
        return f"{'.'.join(self.key_path)} = {list(self.values)}"


@dataclass(frozen=True, slots=True)
class MalformedIds:
    """A value under a key of layer ids that is no list of integers; ``reason`` says what it is."""

    key_path: tuple[str, ...]
    value: Any
    reason: str
    span: Span
    key_span: Span


@dataclass(frozen=True, slots=True, eq=False)
class DraftConfig:
    """What a draft's config says.

    Attributes:
        path: The path to show in messages.
        document: The document, for places.
        data: The same as plain data.
        kind: The kind of draft; ``kind_reason`` names the key that tells it.
        dialect: Whose layout it follows; ``dialect_reason`` names the key that tells it.
        layer_ids: Every list of layer ids, in the order of the text.
        malformed_ids: Values under the same keys that are no lists of integers. Null and ``[]`` are neither.
        architectures: The draft's classes as written.
        num_aux_hidden_states: How many hidden states ``fc`` takes, where the config says so.
        embedded: The draft lives in the config of its own target.
    """

    path: str
    document: Document
    data: dict[str, Any]
    kind: DraftKind
    kind_reason: str
    dialect: Dialect
    dialect_reason: str
    layer_ids: tuple[DraftLayerIds, ...]
    malformed_ids: tuple[MalformedIds, ...]
    architectures: tuple[str, ...]
    num_aux_hidden_states: int | None
    embedded: bool

    @classmethod
    def from_document(cls, document: Document) -> DraftConfig:
        """Read what is there, also of a half-typed document; what is not an object counts as an empty one."""
        data = document.data if isinstance(document.data, dict) else {}
        kind, kind_reason = recognise_kind(data)
        dialect, dialect_reason = recognise_dialect(data)
        layer_ids: list[DraftLayerIds] = []
        malformed: list[MalformedIds] = []
        for key_path, key_span, node in _ids_nodes(document):
            reason = _why_malformed(node)
            if reason is not None:
                malformed.append(MalformedIds(key_path, node.value, reason, node.span, key_span))
            elif node.elements:
                spans = tuple(element.span for element in node.elements)
                layer_ids.append(DraftLayerIds(key_path, tuple(node.value), node.span, spans, key_span))
        return cls(
            path=document.path,
            document=document,
            data=data,
            kind=kind,
            kind_reason=kind_reason,
            dialect=dialect,
            dialect_reason=dialect_reason,
            layer_ids=tuple(sorted(layer_ids, key=lambda ids: ids.span.start)),
            malformed_ids=tuple(sorted(malformed, key=lambda ids: ids.span.start)),
            architectures=_strings(data.get("architectures")),
            num_aux_hidden_states=_num_aux_hidden_states(data),
            embedded=is_embedded_draft(data),
        )

    @classmethod
    def parse(cls, path: str, text: bytes) -> DraftConfig:
        """Read a draft's config from memory, as an editor holds it; never raises for what stands in it."""
        return cls.from_document(Document.parse(path, text))

    @property
    def names_a_class(self) -> bool:
        """Whether a registry is asked for the class that the config names; speculators' formats lead to others."""
        return bool(self.architectures) and self.dialect != "speculators" and not self.embedded

    def ids_at(self, *key_path: str) -> DraftLayerIds | None:
        """The list of layer ids at exactly this key path."""
        return next((ids for ids in self.layer_ids if ids.key_path == key_path), None)

    def node(self, *key_path: str) -> Node | None:
        """The value at a key path."""
        return self.document.find(*key_path)

    def text_node(self, key: str) -> Node | None:
        """A value of the draft's shape (``hidden_size``, ``num_hidden_layers``), wherever the dialect keeps it."""
        for parents in ((), *((parent,) for parent in _SHAPE_PARENTS)):
            node = self.document.find(*parents, key)
            if node is not None and node.value is not None:
                return node
        return None

    def span(self, *key_path: str) -> Span:
        """The place of a value, else of what is around it; without a key path the start of the document."""
        return self.document.span(*key_path)

    def key_span(self, *key_path: str) -> Span | None:
        """The place of the last key of a key path."""
        return self.document.key_span(*key_path)


def read_draft(path: Path, display: str) -> DraftConfig:
    """Read a draft's config.

    Args:
        path: The config, or a model directory that holds a ``config.json``.
        display: How messages name it.

    Raises:
        UnreadableInput: It is missing, not JSON, or no object. That it describes a draft is not checked.
    """
    return DraftConfig.from_document(read_document(*config_path(path, display)))


def _ids_nodes(document: Document) -> Iterator[tuple[tuple[str, ...], Span, Node]]:
    """Every value under a key of layer ids."""
    pending: list[tuple[tuple[str, ...], Node]] = [] if document.root is None else [((), document.root)]
    while pending:
        path, node = pending.pop()
        parent = path[-1] if path else ""
        children = [(str(index), element) for index, element in enumerate(node.elements)]
        for key, child in node.items():
            parents = IDS_KEYS.get(key, ())
            if parents is None or parent in parents:
                key_span = node.key_span(key)
                assert key_span is not None
                yield (*path, key), key_span, child
            children.append((key, child))
        pending.extend(((*path, key), child) for key, child in children if child.kind in ("object", "array"))


def _why_malformed(node: Node) -> str | None:
    if node.value is None:
        return None
    if node.kind != "array":
        return f"{_noun(node)} where a list of integers is read"
    odd = next((element for element in node.elements if type(element.value) is not int), None)
    return None if odd is None else f"a list that holds {_noun(odd)}"


def _noun(node: Node) -> str:
    if node.kind == "number":
        return "an integer" if isinstance(node.value, int) else "a fraction"
    return {"word": "null" if node.value is None else "a boolean", "array": "a list"}.get(
        node.kind, "an object" if node.kind == "object" else "a string"
    )


def _num_aux_hidden_states(data: dict[str, Any]) -> int | None:
    for holder in (data, *(data.get(parent) for parent in _EAGLE_PARENTS)):
        value = holder.get("num_aux_hidden_states") if isinstance(holder, dict) else None
        if type(value) is int:
            return value
    return None


def _strings(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
