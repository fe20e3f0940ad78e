"""The engine's draft class builds a norm that the checkpoint does not fill, or has none for one that it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule

from .._built import held, under_another_name, unfilled
from .._messages import DFLASH_FAMILY, joined_with_and, switched_off

if TYPE_CHECKING:
    from eaglelint.artifacts.draft import DraftConfig
    from eaglelint.draft_modules import BuiltModule, DraftModules

__all__ = ["RULE"]

# What NRM001 and WGT001 say of EAGLE-3 drafts without any source, and NRM001 of norms that nothing turns on.
_OF_EAGLE3 = re.compile(
    r"(?:^|\.)(?:hidden_norm|input_layernorm|post_attention_layernorm|norm|input_norm|fc_norm\.\d+|aux_norm_\w+|fc)$"
)
_LONE = re.compile(r"(?:^|\.)(?:(?:\w*_)?aux_norm(?:_\w+)?|enc_norm|context_norm|feature_norm)$")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, checkpoint = facts.draft, facts.checkpoint
    if draft is None or checkpoint is None or switched_off(draft) or draft.kind in ("unknown", "mtp"):
        return
    if not facts.built:
        return
    from eaglelint.draft_modules import modules_of

    for built in facts.built:
        names = modules_of(checkpoint)
        surplus = list(_surplus(draft, built, names))
        renamed = {module.path for module in under_another_name(built, names).values()}
        missing = [
            module
            for module in unfilled(built, names)
            if (module.norm or built.loaded is not None)
            and module.path not in renamed
            and not _is_said_elsewhere(draft, module.path)
        ]
        # Without the loader, what is missing may be what is too much, under another name.
        if missing and not (built.loaded is None and surplus):
            yield _empty(rule, draft, built, missing, checkpoint.path)
        if surplus and not (built.loaded is None and missing):
            yield _left_out(rule, draft, built, surplus)


def _empty(rule: Rule, draft: DraftConfig, built: DraftModules, missing: list[BuiltModule], checkpoint: str) -> Finding:
    paths = [module.path for module in missing]
    shown = joined_with_and(paths[:4]) if len(paths) < 5 else f"{', '.join(paths[:4])} and {len(paths) - 4} more"
    norms = all(module.norm for module in missing)
    them, stay = ("it", "it stays") if len(missing) == 1 else ("them", "they stay")
    return rule.finding(
        f"{built.cls} in {built.engine} builds {shown}, and {checkpoint} holds no weights for "
        f"{them}: {stay} as initialised{', with weights of one' if norms else ''}, "
        "where the draft was trained without",
        _place(draft),
        confidence="certain" if built.loaded is not None else "likely",
        annotation=f"{built.cls} in {built.engine}",
        related=tuple(Related("built", module.path, Span.at(module.file, module.line)) for module in missing[:3]),
        help="Serve with a class, or a release, that leaves out what the draft was trained without; or save the "
        "weights, if it was trained with them.",
        identity=("empty", built.engine, *paths),
    )


def _left_out(rule: Rule, draft: DraftConfig, built: DraftModules, surplus: list[str]) -> Finding:
    shown = joined_with_and(f"{name}.weight" for name in surplus[:4])
    if len(surplus) > 4:
        shown = f"{', '.join(f'{name}.weight' for name in surplus[:4])} and {len(surplus) - 4} more"
    loader = (Related("loaded", built.cls, Span.at(*built.loader)),) if built.loader[0] else ()
    return rule.finding(
        f"the checkpoint has {shown}, and {built.cls} in {built.engine} builds no such norm: what the draft was "
        "trained with is left out",
        _place(draft),
        confidence="likely",
        severity="warning",
        annotation=f"{built.cls} in {built.engine}",
        related=loader,
        help="Serve with a class, or a release, that has the norm.",
        identity=("surplus", built.engine, *surplus),
    )


def _surplus(draft: DraftConfig, built: DraftModules, names: tuple[str, ...]) -> Iterator[str]:
    """Norms of the checkpoint that the class has not, as far as all of it is known."""
    from eaglelint.draft_modules import is_norm

    taken = {name for name, _ in built.loaded or ()}
    owned = held(module.path for module in built.modules)
    for place, name in held(name for name in names if is_norm(name)).items():
        if name in taken or place in owned or _is_said_elsewhere(draft, name):
            continue
        last = {part for path in built.unknown for part in path.split(".")[-1:]}
        if not last & set(name.split(".")):
            yield name


def _is_said_elsewhere(draft: DraftConfig, path: str) -> bool:
    if draft.kind in ("eagle3", "peagle") and _OF_EAGLE3.search(path):
        return True
    return draft.kind in DFLASH_FAMILY | {"eagle3", "peagle"} and _LONE.search(path) is not None


def _place(draft: DraftConfig) -> Span:
    return draft.key_span("architectures") or draft.span()


RULE = Rule(
    code="NRM006",
    name="unfilled-norms",
    summary="The engine's draft class and the checkpoint do not have the same norms.",
    severity="error",
    check=_check,
)
