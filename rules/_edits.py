"""Edits of a draft's config that several rules propose: another value, or one where a reader looks for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from eaglelint.artifacts.document import Document, Node
from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.finding import Edit, Safety, Span
from eaglelint.rule import Facts, Served
from eaglelint.wiring import compare

from ._messages import all_known, engine_of, ids_read_by

__all__ = ["insert_ids", "mended_list", "replace_ids", "replace_value", "rivals_of", "set_value"]


def mended_list(facts: Facts, served: Served) -> Edit | None:
    """The list with which an engine serves what was trained, in place of the one that it reads now.

    ``safe`` where the training shows by itself what it captured. Where its convention was only declared, the declared
    meaning of the ids changes with the list, and a second run would move them once more: ``unsafe``. Where another
    engine of the scan needs another list: ``display``.
    """
    draft, training, mended = facts.draft, facts.training, served.mended_ids
    ids = None if draft is None else ids_read_by(draft, served.wiring)
    if draft is None or training is None or ids is None or mended is None or mended == ids.values:
        return None
    # The mended ids were verified by a derivation of their own, so a fault of the present ones takes nothing away.
    settled = training.status == "exact" and (served.wiring.status == "exact" or bool(served.wiring.faults))
    unjudged = any(not all_known(other.wiring) and not other.wiring.faults for other in _readers(facts, served, ids))
    safety: Safety = "safe" if settled and not training.declared and not unjudged else "unsafe"
    if rivals_of(facts, served):
        safety = "display"
    return replace_ids(draft, ids, mended, safety, f"ids that {engine_of(served.wiring)} turns into {training}")


def rivals_of(facts: Facts, served: Served) -> tuple[Served, ...]:
    """The other engines that read the same list and that the mended one would not serve."""
    training = facts.training
    ids = None if facts.draft is None else ids_read_by(facts.draft, served.wiring)
    if training is None or ids is None or served.mended_ids is None:
        return ()
    return tuple(
        other
        for other in _readers(facts, served, ids)
        if (all_known(other.wiring) or other.wiring.faults)
        and (
            other.mended_ids not in (None, served.mended_ids)
            or (all_known(other.wiring) and not compare(training, other.wiring))
        )
    )


def _readers(facts: Facts, served: Served, ids: DraftLayerIds) -> Iterable[Served]:
    assert facts.draft is not None
    for other in facts.servings:
        if other is not served and ids_read_by(facts.draft, other.wiring) is ids:
            yield other


def replace_ids(
    draft: DraftConfig, ids: DraftLayerIds, values: Sequence[int], safety: Safety, description: str
) -> Edit:
    """Another list in place of one that stands in the config, in that one's own layout."""
    node = draft.node(*ids.key_path)
    assert node is not None and node.elements
    return Edit(safety, ids.span, _in_layout_of(node, values), description)


def _in_layout_of(node: Node, values: Sequence[int]) -> str:
    """``values`` with the brackets, line breaks and indentation that a list of integers has in its file."""
    data, elements = node.source.data, node.elements
    opening = data[node.start : elements[0].start].decode()
    closing = data[elements[-1].end : node.end].decode()
    between = "," + (opening[1:] or " ")
    if len(elements) > 1:
        between = data[elements[0].end : elements[1].start].decode()
    if between.strip() != ",":
        return json.dumps(list(values))
    return opening + between.join(map(str, values)) + closing


def insert_ids(
    draft: DraftConfig, key_path: Sequence[str], values: Sequence[int], safety: Safety, description: str
) -> Edit | None:
    """A list at a key path that holds none yet; ``None`` where the config holds something else there."""
    return _insert(draft.document.root, key_path, list(values), safety, description)


def set_value(document: Document, key_path: Sequence[str], value: Any, safety: Safety, description: str) -> Edit | None:
    """A value at a key path, in place of the one that stands there or as a new member."""
    node = document.find(*key_path)
    if node is not None:
        return replace_value(node, value, safety, description)
    return _insert(document.root, key_path, value, safety, description)


def replace_value(node: Node, value: Any, safety: Safety, description: str) -> Edit:
    """Another value in place of one that stands in a config."""
    return Edit(safety, node.span, json.dumps(value), description)


def _insert(node: Node | None, key_path: Sequence[str], value: Any, safety: Safety, description: str) -> Edit | None:
    for depth, key in enumerate(key_path):
        if node is None or node.kind != "object":
            return None
        child = node.get(key)
        rest = _nested(key_path[depth + 1 :], value)
        if child is None:
            return _insert_member(node, key, rest, safety, description)
        if child.value is None or child.value == []:
            return Edit(safety, child.span, json.dumps(rest), description)
        node = child
    return None


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _insert_member(node: Node, key: str, value: Any, safety: Safety, description: str) -> Edit:
    """``"key": value`` as the first member of an object, on a line of its own where the first one has that."""
    member = f"{json.dumps(key)}: {json.dumps(value)}"
    if not node.members:
        return Edit(safety, node.span, f"{{{member}}}", description)
    start = min(member.start for member in node.members.values())
    data = node.source.data
    line = data.rfind(b"\n", 0, start) + 1
    indentation = data[line:start]
    separator = " "
    if line > node.start and not indentation.strip():
        separator = ("\r\n" if data[:line].endswith(b"\r\n") else "\n") + indentation.decode()
    position = node.source.position(start)
    return Edit(safety, Span(node.source.path, position, position), f"{member},{separator}", description)
