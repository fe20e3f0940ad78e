"""What a wiring takes for granted about the deployment, under the engines' own names for it.

The engines' names for these facts are the same everywhere; where the interpreter meets one of them, it takes the
value from here instead of following it into process groups and server flags. Which assumptions an answer used is
part of the answer, each with the name and value under which ``--assume`` changes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from eaglelint.deployment import DEFAULT, Deployment
from eaglelint.source.values import Instance, Unknown

__all__ = ["ASSUMPTIONS", "SWITCHED", "Assumption", "assumptions_of", "stated", "telling"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A fact about the deployment: a sentence for people, and the names in code that mean it."""

    name: str
    text: str
    pattern: re.Pattern[str]
    value: Any


SWITCHED = frozenset(["tbo"])  # what requests of one model may differ in


def _names(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{name})" for name in names))


_FIRST_RANK = _names("is_first_rank", "(?:get_)?(?:pp_)?is_first_(?:pp_)?rank")
_LAST_RANK = _names("is_last_rank", "(?:get_)?(?:pp_)?is_last_(?:pp_)?rank")
_STAGES = _names("(?:get_)?(?:pp|pipeline(?:_model)?(?:_parallel)?)_(?:world_)?size")
_STAGE = _names("(?:get_)?(?:pp|pipeline(?:_model)?(?:_parallel)?)_rank")
_STAGE_GROUP = _names("(?:get_)?pp_group")
_SIZES = _names(
    "(?:get_)?(?:[a-z0-9_]+_)?(?:world_size|parallel_size)",
    "(?:get_)?(?:attn_|attention_|moe_|pipeline_)?(?:tp|pp|dp|ep|cp|dcp|pcp)_size",
    "get_(?:[a-z0-9_]+_)?world_size",
)
_SHARING = _names(
    "(?:get_)?(?:moe_)?tp_size",
    "(?:get_)?tensor_(?:model_)?parallel_(?:world_)?size",
)
_ATTENTION_SHARING = _names("(?:get_)?(?:attn|attention)_tp_size", "get_attention_tp_size")
_RANKS = _names(
    "rank_in_group",
    "(?:get_)?(?:[a-z0-9_]+_)?(?:tp|pp|dp|ep|cp)_rank",
    "local_rank",
    "get_(?:[a-z0-9_]+_)?rank",
)
_SHARING_RANKS = _names("(?:get_)?(?:[a-z0-9_]+_)?tp_rank", "get_tensor_model_parallel_rank")
_CONTEXT = _names("(?:[a-z0-9_]+_)?(?:enable|use)_(?:prefill_)?(?:cp|context_parallel)", "[a-z_]+_prefill_cp")
_SEQUENCE = _names("(?:[a-z_]+_)?(?:use|is|enable)_(?:sp|sequence_parallel)(?:_[a-z_]+)?", "is_sequence_parallel")
_DP_ATTENTION = _names("(?:is_|enable_|use_)dp_attention(?:_enabled)?")
_OVERLAP = _names("can_run_tbo", "enable_two_batch_overlap", "is_tbo_enabled")
_ALL_TO_ALL = _names("is_(?:deepep(?:_v2)?|mooncake|nixl|mori|pplx|ascend_fuseep|ascend_tp|(?:flashinfer_)?megamoe)")
_IMAGES = _names("contains_(?:mm|image|audio|video)_inputs")
_PLATFORMS = {
    "cuda": "_?is_cuda",
    "rocm": "_?is_(?:hip|rocm)",
    **{name: f"_?is_{name}" for name in ("cpu", "xpu", "hpu", "npu", "musa", "mps", "tpu")},
}
_ARTICLES = {"cuda": "an NVIDIA GPU", "rocm": "an AMD GPU", "mps": "an Apple GPU"}


def assumptions_of(deployment: Deployment, stage: int = 0) -> tuple[Assumption, ...]:
    """What the names in code mean on one pipeline stage of a deployment, the first that matches a name."""
    return (
        *_pipeline(deployment, stage),
        *_sharing(deployment),
        Assumption("tbo", _text(deployment, "tbo"), _OVERLAP, deployment.on("tbo")),
        Assumption("encoder", "a server of the whole model", _names("(?:mm_)?encoder_only|language_model_only"), False),
        Assumption("prefill", "every layer sees every token in prefill", _names("kv_sharing_fast_prefill"), False),
        Assumption("rl", "no reinforcement learning", _names("rl_on_policy_target"), None),
        Assumption("moe", "no all-to-all among experts", _names("get_moe_a2a_backend"), Unknown("no back end")),
        Assumption("moe", "no all-to-all among experts", _ALL_TO_ALL, False),
        Assumption("images", _text(deployment, "images"), _IMAGES, deployment.on("images")),
        Assumption("inference", "a model in inference", _names("training"), False),
        Assumption("eager", "eager execution", _names("is_(?:torchdynamo_)?compiling"), False),
        Assumption("idle", "a batch with tokens in it", _names("is_idle"), False),
        *_platform(deployment),
    )


def _text(deployment: Deployment, name: str) -> str:
    """The assumption in words, and how it is changed."""
    value = deployment.value(name)
    words = {
        "pp": "one pipeline stage" if value == "1" else f"{value} pipeline stages",
        "tp": "one device" if value == "1" else f"{value} devices share each layer",
        "dp-attention": f"{'' if value == 'on' else 'no '}data-parallel attention",
        "tbo": f"{'' if value == 'on' else 'no '}two-batch overlap",
        "images": f"a batch with{'' if value == 'on' else 'out'} images",
        "platform": _ARTICLES.get(value, f"a device of the kind {value}"),
    }[name]
    return f"{words} ({name}={value})"


def _pipeline(deployment: Deployment, stage: int) -> tuple[Assumption, ...]:
    count = deployment.number("pp")
    text = _text(deployment, "pp")
    first, last = stage == 0, stage == count - 1
    ends = (Assumption("pp", text, _FIRST_RANK, first), Assumption("pp", text, _LAST_RANK, last))
    if count == 1:
        return ends
    group = {"world_size": count, "rank_in_group": stage, "is_first_rank": first, "is_last_rank": last}
    return (
        *ends,
        Assumption("pp", text, _STAGES, count),
        Assumption("pp", text, _STAGE, stage),
        Assumption("pp", text, _STAGE_GROUP, Instance(None, attrs=group, name="the pipeline's group")),
        Assumption("pp", text, _names("model_parallel_is_initialized"), True),
    )


def _sharing(deployment: Deployment) -> tuple[Assumption, ...]:
    """Devices that work on the same layers. Which of several one is does not matter: its rank is open."""
    count, attention = deployment.number("tp"), deployment.on("dp-attention")
    text, groups = _text(deployment, "tp"), _text(deployment, "dp-attention")
    fixed = (
        Assumption("tp", text, _CONTEXT, False),
        Assumption("tp", text, _SEQUENCE, False),
        Assumption("dp-attention", groups, _DP_ATTENTION, attention),
    )
    if count == 1 and not attention:
        return (Assumption("tp", text, _SIZES, 1), Assumption("tp", text, _RANKS, 0), *fixed)
    open_size = Unknown("the size of an attention group", present=True)
    return (
        Assumption("tp", text, _SHARING, count),
        Assumption("tp", text, _ATTENTION_SHARING, open_size if attention else count),
        Assumption("tp", text, _SHARING_RANKS, Unknown("the rank of a device", present=True)),
        *fixed,
    )


def _platform(deployment: Deployment) -> tuple[Assumption, ...]:
    chosen, text = deployment.value("platform"), _text(deployment, "platform")
    alike = Assumption("platform", text, _names("_?is_cuda_alike"), chosen in ("cuda", "rocm"))
    others: tuple[Assumption, ...] = (
        () if chosen == "rocm" else (Assumption("platform", text, _names("_?use_aiter"), False),)
    )
    if chosen != "cpu":
        others += (Assumption("platform", text, _names("_?is_cpu_amx_available"), False),)
    tests = tuple(Assumption("platform", text, _names(pattern), name == chosen) for name, pattern in _PLATFORMS.items())
    return (alike, *tests, *others)


def stated(deployment: Deployment) -> tuple[str, ...]:
    """What every serving wiring says it takes for granted, whether the code asked for it or not."""
    always = tuple(_text(deployment, name) for name in ("pp", "tbo"))
    return (*always, "eager execution", *(f"{name}={value} set in the environment" for name, value in _set(deployment)))


def _set(deployment: Deployment) -> list[tuple[str, str]]:
    return sorted(deployment.environment.items())


def telling(assumptions: tuple[Assumption, ...]) -> Callable[[str], Assumption | None]:
    """What finds the assumption that gives the attribute or function of a name its value, if one does."""
    first = _first_matches(tuple(assumption.pattern for assumption in assumptions))

    def tell(name: str) -> Assumption | None:
        index = first.get(name)
        if index is None:
            matching = (i for i, assumption in enumerate(assumptions) if assumption.pattern.fullmatch(name))
            index = first[name] = next(matching, -1)
        return assumptions[index] if index >= 0 else None

    return tell


@lru_cache(maxsize=64)
def _first_matches(patterns: tuple[re.Pattern[str], ...]) -> dict[str, int]:
    """For each name that was asked for, the first pattern that matches it, -1 for none: filled by whoever asks."""
    return {}


ASSUMPTIONS = assumptions_of(DEFAULT)
