"""The cache of keys and values is kept in a type that the draft's attention was not made for."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

__all__ = ["RULE"]

_NARROW = ("fp8", "fp4", "nvfp4", "int8")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, launch = facts.draft, facts.launch
    cache = None if launch is None else launch.get("kv_cache_dtype")
    if draft is None or launch is None or cache is None or cache.value is None or draft.embedded:
        return
    if (
        not cache.value.startswith(("fp8", "fp4", "nvfp4", "int8"))
        or draft.text_node("quantization_config") is not None
    ):
        return
    yield rule.finding(
        f"{cache.flag} {cache.value} is meant for the target, and the draft takes it over: its attention computes in "
        "the type of its weights, and has no scales for another",
        cache.span,
        confidence="possible",
        help="Check acceptance with the cache in the type of the weights; where the engine stops at types of query "
        "and key, take a release in which the draft's cache has a type of its own.",
        identity=(cache.value, launch.engine),
    )


RULE = Rule(
    code="DTY003",
    name="foreign-cache-type",
    summary="The draft takes over a cache type that is meant for the target.",
    severity="warning",
    check=_check,
)
