"""A broad except around a config read: where a key is missing or misplaced, the engine takes its default in "
"silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._messages import key_phrase
from .._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import EngineFacts, Place, Reader

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    if facts.draft is not None:
        return  # whether this draft's ids are read is CFG001's to say
    for engine in facts.engines:
        for reader in engine.readers:
            for handler, read in reader.swallowed:
                yield _finding(rule, engine, reader, handler, read)


def _finding(rule: Rule, engine: EngineFacts, reader: Reader, handler: Place, read: Place) -> Finding:
    key = next(found.path for found in reader.reads if found.place == read)
    clause = handler.code.partition(":")[0]
    return rule.finding(
        f"{reader.name} reads {key_phrase(key)} under a broad {clause}: ids that stand elsewhere, or that cannot be "
        "read, are "
        "passed over in silence, and the default is captured",
        handler.span,
        confidence="certain",
        annotation="every error ends here",
        related=related("read", read),
        help="Ask for the key (config.get(...)), and raise or warn where the ids cannot be read.",
        identity=(engine.label, reader.name),
    )


RULE = Rule(
    code="CFG007",
    name="swallowed-read",
    summary="A broad except around the read of the layer ids falls back to the default in silence.",
    severity="warning",
    check=_check,
)
