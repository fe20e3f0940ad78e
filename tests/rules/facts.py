"""Facts of small pipelines, written by hand: what the rules are shown in their tests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from eaglelint.artifacts.document import Document
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Finding
from eaglelint.registry import find_rule
from eaglelint.rule import Facts, Served
from eaglelint.wiring import Evidence, Slot, Status, Wiring

__all__ = [
    "NESTED",
    "TOP",
    "dflash",
    "draft",
    "eagle3",
    "fixed",
    "found",
    "served",
    "slots",
    "stated",
    "target",
    "trained",
]

NESTED = ("eagle_config", "eagle_aux_hidden_state_layer_ids")
TOP = ("eagle_aux_hidden_state_layer_ids",)


def draft(text: str) -> DraftConfig:
    return DraftConfig.parse("draft/config.json", text.encode())


def eagle3(ids: list[int] | None = None, *, top: list[int] | None = None, **more: Any) -> DraftConfig:
    """An EAGLE-3 draft with ids in ``eagle_config``, at the top level, at both places or nowhere."""
    data: dict[str, Any] = {"architectures": ["LlamaForCausalLMEagle3"], **more}
    if top is not None:
        data["eagle_aux_hidden_state_layer_ids"] = top
    if ids is not None:
        data["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": ids}
    return draft(json.dumps(data))


def dflash(ids: list[int] | None = None) -> DraftConfig:
    section = {} if ids is None else {"target_layer_ids": ids}
    return draft(json.dumps({"architectures": ["DFlashDraftModel"], "dflash_config": section}))


def target(num_layers: int = 61) -> TargetConfig:
    text = json.dumps({"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": num_layers})
    return TargetConfig.from_document(Document.parse("target/config.json", text.encode()))


def slots(*boundaries: int | None) -> tuple[Slot, ...]:
    return tuple(Slot("unknown") if k is None else Slot("stream", k) for k in boundaries)


def trained(*boundaries: int, status: Status = "exact") -> Wiring:
    """A training script that captures by itself."""
    note = f"captures before layer {', '.join(map(str, boundaries))}"
    return Wiring(
        "training",
        "training/capture.py",
        slots(*boundaries),
        status,
        evidence=(Evidence("training/capture.py", 41, note),),
    )


def stated(*boundaries: int) -> Wiring:
    """A training that was only declared, with --trained-by."""
    return Wiring("training", "declared: boundary ids", slots(*boundaries), "exact", declared=True)


def served(
    boundaries: tuple[int | None, ...],
    ids: tuple[int, ...] | None = None,
    *,
    version: str = "0.5.9",
    key: tuple[str, ...] = NESTED,
    looks_in: tuple[tuple[str, ...], ...] = (NESTED,),
    mended: tuple[int, ...] | None = None,
    uncaptured: tuple[int, ...] = (),
    status: Status = "exact",
    engine: str = "sglang",
    **more: Any,
) -> Served:
    """An engine that took ``ids`` from ``key``, or its default, and feeds the draft these boundaries."""
    file = f"{engine}-{version}/deepseek_v2.py"
    evidence = (
        Evidence(file, 2975, f"layers_to_capture = {list(boundaries)}"),
        *(
            Evidence(file, 2728, "aux_hidden_states.append(hidden_states + residual)", k)
            for k in range(len(boundaries))
        ),
        Evidence(f"{engine}-{version}/logits_processor.py", 553, "torch.cat(aux_hidden_states, dim=-1)"),
    )
    wiring = Wiring(
        "serving",
        f"{engine} {version} (DeepseekV3ForCausalLM)",
        slots(*boundaries),
        status,
        engine=engine,
        engine_version=version,
        target_class="DeepseekV3ForCausalLM",
        draft_kind="eagle3",
        layer_ids="default" if ids is None else ids,
        num_layers=61,
        evidence=evidence if boundaries else (),
        ids_from=None if ids is None else key,
    )
    return Served(replace(wiring, **more), looks_in, mended, uncaptured)


def found(
    code: str,
    config: DraftConfig | None,
    *servings: Served,
    training: Wiring | None = None,
    target: TargetConfig | None = None,
) -> list[Finding]:
    """What one rule finds; each finding can be named in a report."""
    rule = find_rule(code)
    findings = list(rule.check(rule, Facts(config, target, training, servings)))
    assert len({finding.fingerprint for finding in findings}) == len(findings)
    return findings


def fixed(config: DraftConfig, finding: Finding) -> str:
    """The draft's text after the finding's one edit."""
    (edit,) = finding.edits
    assert edit.span.end is not None
    lines = config.document.text.decode().splitlines(keepends=True)
    start, end = (
        sum(map(len, lines[: position.line - 1])) + position.column - 1 for position in (edit.span.start, edit.span.end)
    )
    text = "".join(lines)
    return text[:start] + edit.text + text[end:]
