"""Flags that add a norm and the tensors of such norms do not agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Span
from eaglelint.rule import Facts, Rule

from .._header import first_layer, layers_of, state_counts, tensor_row
from .._messages import DFLASH_FAMILY, joined_with_and, key_phrase, switched_off

__all__ = ["RULE"]

# Flags and the norms that they add: SGLang 0.5.23 and vLLM 0.33.0, llama_eagle3.py.
_FLAGGED = (
    (
        ("fc_norm", "use_aux_norm"),
        re.compile(r"(?:^|\.)(?:fc_norm\.\d+|aux_norm_(?:low|mid|high))\.weight$"),
        "fc_norm",
    ),
    (("norm_before_fc",), re.compile(r"\binput_norm\.weight$"), "input_norm"),
)
# Norms that the classes of EAGLE-3 have in any case; left at one where the checkpoint does not fill them.
_IN_LAYER = ("hidden_norm.weight", "input_layernorm.weight", "post_attention_layernorm.weight")
_LONE_NORM = re.compile(r"(?:^|\.)((?:\w*_)?aux_norm(?:_\w+)?|enc_norm|context_norm|feature_norm)\.weight$")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or not checkpoint.complete or switched_off(draft):
        return
    if draft.kind not in DFLASH_FAMILY | {"eagle3", "peagle"} or draft.embedded:
        return
    claimed: set[str] = set()
    for flags, pattern, name in _FLAGGED:
        there = sorted(found for found in checkpoint.names if pattern.search(found))
        claimed.update(there)
        if draft.kind not in DFLASH_FAMILY:
            yield from _flag(rule, draft, checkpoint, flags, there, name)
    if draft.kind in ("eagle3", "peagle") and layers_of(checkpoint):
        yield from _always(rule, draft, checkpoint)
    for name in sorted(checkpoint.names - claimed):
        if match := _LONE_NORM.search(name):
            yield rule.finding(
                f"the checkpoint has {name}, and nothing in the config turns a norm called {match[1]} on: it is "
                "loaded by nobody, or loaded and not applied",
                _place(draft),
                confidence="likely",
                severity="warning",
                related=(tensor_row(checkpoint.tensors[name]),) if name in checkpoint.tensors else (),
                help="Check that the engine applies this norm to the states before fc.",
                identity=("lone", name),
            )


def _flag(
    rule: Rule, draft: DraftConfig, checkpoint: Checkpoint, flags: tuple[str, ...], there: list[str], name: str
) -> Iterator[Finding]:
    found = _switch(draft, flags)
    on = found is not None and found[2]
    if on and not there:
        assert found is not None
        key_path, span, _ = found
        yield rule.finding(
            f"{key_phrase(key_path)} is true, and the checkpoint has no {name}: the norm is applied with weights "
            "that "
            "were never trained",
            span,
            confidence="certain",
            help=f"Save {name} with the checkpoint, or write false if the draft was trained without it.",
            identity=("flag", flags[0]),
        )
    elif there and not on:
        yield rule.finding(
            f"the checkpoint has {joined_with_and(there)}, and {flags[0]} is not true: the norm that the draft was "
            "trained with is left out",
            _place(draft) if found is None else found[1],
            confidence="certain",
            related=tuple(tensor_row(checkpoint.tensors[item]) for item in there[:3] if item in checkpoint.tensors),
            help=f"Write {flags[0]} true.",
            identity=("tensor", flags[0]),
        )
    elif there and name == "fc_norm" and all(len(there) != count for count, _, _ in state_counts(draft)):
        count, why, span_of_count = state_counts(draft)[0]
        yield rule.finding(
            f"the checkpoint has {len(there)} norms before fc, and {count} states are fed: {why}",
            span_of_count or _place(draft),
            confidence="likely",
            help="There is one norm for each state.",
            identity=("count", str(len(there)), str(count)),
        )


def _always(rule: Rule, draft: DraftConfig, checkpoint: Checkpoint) -> Iterator[Finding]:
    layer = first_layer(checkpoint)
    names = [name for name in _IN_LAYER if layer and name not in layer]
    if checkpoint.name_of("norm.weight") is None:
        names.append("norm.weight")
    if not names:
        return
    yield rule.finding(
        f"the checkpoint has no {joined_with_and(names, 'and no')}, which every EAGLE-3 class builds: "
        f"{'it stays' if len(names) == 1 else 'they stay'} as initialised, with weights of one",
        _place(draft),
        confidence="likely",
        help="Save the draft's own norms with the checkpoint.",
        identity=("always", *names),
    )


def _switch(draft: DraftConfig, flags: tuple[str, ...]) -> tuple[tuple[str, ...], Span, bool] | None:
    """The place and state of a flag, as engines look: in eagle_config first, then at the top level."""
    for section in (("eagle_config",), ()):
        for flag in flags:
            node = draft.node(*section, flag)
            if node is not None:
                return (*section, flag), node.span, node.value is True
    return None


def _place(draft: DraftConfig) -> Span:
    return draft.key_span("architectures") or draft.span()


RULE = Rule(
    code="NRM001",
    name="unmatched-norms",
    summary="Flags that add a norm and the norms in the checkpoint do not agree.",
    severity="error",
    check=_check,
)
