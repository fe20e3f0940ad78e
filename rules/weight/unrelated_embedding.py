"""The draft's checkpoint has an embedding that has nothing to do with the target's."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.embeddings import EmbeddingRows
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._header import tensor_row

__all__ = ["RULE"]

# Rows of independent random vectors of this width have cosines well below the limit.
_LEAST_WIDTH = 64
_UNRELATED = 0.5


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, rows = facts.draft, facts.embeddings
    if draft is None or rows is None or draft.embedded or rows.draft.shape[1] < _LEAST_WIDTH:
        return
    if not rows.rows or any(target == 0 for _, target in rows.norms):
        return
    filled = [own > 0 for own, _ in rows.norms]
    if any(filled) and max(map(abs, rows.cosines)) >= _UNRELATED:
        return
    told = _requires_grad(facts)
    if told and any(filled):
        return
    what = "is zero" if not any(filled) else f"is unrelated to the target's (cosine {_range(rows)})"
    yield rule.finding(
        f"{rows.draft.name} {what} in all of the {len(rows.rows)} rows compared: it looks like one that was never "
        "filled, and engines that keep a draft's own embedding use it",
        draft.key_span("architectures") or draft.span(),
        confidence="certain" if not any(filled) else "likely",
        severity="error" if not any(filled) else "warning",
        related=(tensor_row(rows.draft), tensor_row(rows.target)),
        help="Leave the embedding out of the export, or save the target's; where it was trained from scratch, say "
        "embed_requires_grad true.",
        identity=(rows.draft.name,),
    )


def _requires_grad(facts: Facts) -> bool:
    """Whether the config says that the embedding was trained; speculators writes it."""
    node = None if facts.draft is None else facts.draft.node("embed_requires_grad")
    return node is not None and node.value is True


def _range(rows: EmbeddingRows) -> str:
    return f"{min(rows.cosines):+.2f} to {max(rows.cosines):+.2f}"


RULE = Rule(
    code="WGT003",
    name="unrelated-embedding",
    summary="The draft's own embedding has nothing to do with the target's.",
    severity="warning",
    check=_check,
)
