"""The draft's config names no class, one that the engine does not have, or that of a whole model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding
from eaglelint.rule import Facts, Rule

from .._header import stated_by

if TYPE_CHECKING:
    from eaglelint.draft_class import DraftClass

__all__ = ["RULE"]

_BASE_CLASS = re.compile(r"(?!\w*(?:Eagle|EAGLE|Draft|DFlash|DSpark|Domino|MTP|NextN|Specul))\w+ForCausalLM")
# Drafts have one layer or a few; a model of its own has more.
_FEW_LAYERS = 4


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    # speculators' formats are told by speculators_model_type, and vLLM's wrapper by model_type.
    if draft is None or draft.embedded or draft.dialect == "speculators" or not isinstance(draft.data, dict):
        return
    if not draft.data or _is_wrapped(draft):
        return
    if not draft.architectures:
        node = draft.node("architectures")
        yield rule.finding(
            "the config names no architectures: an engine makes up a class from model_type, or stops",
            draft.span() if node is None else node.span,
            confidence="likely",
            help=f"Write the class under which your engine registers this kind of draft, such as {_example(draft)}.",
            identity=("none",),
        )
        return
    unregistered = [found for found in facts.draft_classes if not found.registered]
    for found in unregistered:
        yield _unregistered(rule, draft, found)
    if unregistered:
        return
    name = draft.architectures[0]
    layers = stated_by(draft, "num_hidden_layers")
    small = draft.kind in ("eagle3", "eagle") or (
        draft.kind == "unknown" and layers is not None and layers.value <= _FEW_LAYERS
    )
    if not small or not _BASE_CLASS.fullmatch(name):
        return
    place = draft.node("architectures", "0")
    span = draft.span("architectures") if place is None else place.span
    eagle3 = draft.kind == "eagle3"
    better = f"{name}Eagle3" if eagle3 else f"{name}Eagle"
    yield rule.finding(
        f"{name} is the class of a whole model: SGLang loads the draft as one; vLLM puts Eagle before the name by "
        "itself",
        span,
        confidence="likely",
        severity="warning",
        annotation=f"{better} in SGLang",
        help=f"For SGLang write {better}.",
        edits=() if place is None else (Edit("unsafe", span, f'"{better}"', "the class that SGLang registers"),),
        identity=(name,),
    )


def _unregistered(rule: Rule, draft: DraftConfig, found: DraftClass) -> Finding:
    name = draft.architectures[0]
    near = get_close_matches(name, found.known, n=3, cutoff=0.6)
    place = draft.node("architectures", "0")
    return rule.finding(
        f"{found.engine} registers no class {name}: it stops, or loads the draft as something else",
        draft.span("architectures") if place is None else place.span,
        confidence="likely",
        annotation=f"not among {len(found.known)} classes of drafts",
        help=(f"Classes of drafts with similar names: {', '.join(near)}. " if near else "")
        + "Name a class that runs this kind of draft, or take a release that has this one.",
        identity=(name, found.engine),
    )


def _is_wrapped(draft: DraftConfig) -> bool:
    model = draft.node("model")
    return draft.data.get("model_type") in ("eagle", "eagle3", "medusa") and model is not None


def _example(draft: DraftConfig) -> str:
    return {
        "dflash": "DFlashDraftModel",
        "dspark": "DSparkDraftModel",
        "domino": "DominoDraftModel",
        "peagle": "PEagleDraftModel",
        "eagle": "LlamaForCausalLMEagle",
    }.get(draft.kind, "LlamaForCausalLMEagle3")


RULE = Rule(
    code="CFG004",
    name="no-draft-class",
    summary="The draft's config names no class, an unregistered one, or that of a whole model.",
    severity="error",
    check=_check,
)
