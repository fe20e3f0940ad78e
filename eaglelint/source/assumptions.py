"""What a wiring takes for granted about the deployment unless it is told otherwise.

The engines' own names for these facts are the same everywhere; where the interpreter meets one of them, it takes the
value from here instead of following it into process groups and server flags. Which assumptions an answer used is
part of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["ASSUMPTIONS", "Assumption", "assumed"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A fact about the deployment: a sentence for people, and the names in code that mean it."""

    name: str
    text: str
    pattern: re.Pattern[str]
    value: Any


def _names(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{name})" for name in names))


ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "pp",
        "one pipeline stage",
        _names("is_first_rank", "is_last_rank", "(?:get_)?(?:pp_)?is_(?:first|last)_(?:pp_)?rank"),
        True,
    ),
    Assumption(
        "ranks",
        "one device",
        _names(
            "(?:get_)?(?:[a-z0-9_]+_)?(?:world_size|parallel_size)",
            "(?:get_)?(?:attn_|attention_|moe_|pipeline_)?(?:tp|pp|dp|ep|cp|dcp|pcp)_size",
            "get_(?:[a-z0-9_]+_)?world_size",
        ),
        1,
    ),
    Assumption(
        "ranks",
        "one device",
        _names(
            "rank_in_group",
            "(?:get_)?(?:[a-z0-9_]+_)?(?:tp|pp|dp|ep|cp)_rank",
            "local_rank",
            "get_(?:[a-z0-9_]+_)?rank",
        ),
        0,
    ),
    Assumption(
        "ranks",
        "one device",
        _names("(?:[a-z0-9_]+_)?(?:enable|use)_(?:prefill_)?(?:cp|context_parallel)", "[a-z_]+_prefill_cp"),
        False,
    ),
    Assumption("tbo", "no two-batch overlap", _names("can_run_tbo", "enable_two_batch_overlap"), False),
    Assumption(
        "ranks",
        "one device",
        _names("(?:[a-z_]+_)?(?:use|is|enable)_(?:sp|sequence_parallel)(?:_[a-z_]+)?", "is_sequence_parallel"),
        False,
    ),
    Assumption("encoder", "a server of the whole model", _names("encoder_only"), False),
    Assumption("text", "a batch without images", _names("contains_(?:mm|image|audio|video)_inputs"), False),
    Assumption("idle", "a batch with tokens in it", _names("is_idle"), False),
    Assumption("platform", "an NVIDIA GPU", _names("_?is_cuda(?:_alike)?"), True),
    Assumption(
        "platform",
        "an NVIDIA GPU",
        _names("_?is_(?:hip|rocm|npu|cpu|xpu|hpu|musa|mps|tpu)", "_?use_aiter", "_?is_cpu_amx_available"),
        False,
    ),
)


def assumed(name: str, assumptions: tuple[Assumption, ...]) -> Assumption | None:
    """The assumption that gives the attribute or function of that name its value, if one does."""
    for assumption in assumptions:
        if assumption.pattern.fullmatch(name):
            return assumption
    return None
