"""Keys that an engine's adapter does not hand on, as findings: in a draft's config, and in the adapter itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding, Severity
from eaglelint.rule import Facts, Rule

from ._messages import joined_with_and
from ._source import related

if TYPE_CHECKING:
    from eaglelint.survey.facts import DroppedKey, EngineFacts, Place

__all__ = ["dropped"]


def dropped(rule: Rule, facts: Facts, wanted: Callable[[str], bool], severity: Severity) -> Iterator[Finding]:
    """Findings on the wanted keys: those that the draft's config sets, or in an engine's tree what is amiss."""
    for engine in facts.engines:
        keys = [found for found in engine.dropped_keys if wanted(found.key)]
        yield from (
            _in_source(rule, engine, keys)
            if facts.draft is None
            else _in_draft(rule, facts, engine.label, keys, severity)
        )


def _in_draft(rule: Rule, facts: Facts, engine: str, keys: list[DroppedKey], severity: Severity) -> Iterator[Finding]:
    draft = facts.draft
    assert draft is not None
    kind = draft.node("speculators_model_type")
    seen: set[str] = set()
    for found in keys:
        node = draft.node(found.key)
        if kind is None or kind.value != found.adapter or node is None or found.key in seen:
            continue
        seen.add(found.key)
        if node.value is None or node.value == _literal(found.default):
            continue  # the class comes to the same without it
        yield rule.finding(
            f"{engine} reads {found.key} in the draft's class, and its adapter of speculators' {found.adapter} configs "
            f"does not hand it on: the draft runs with {found.default}",
            node.span,
            confidence="certain",
            severity=severity,
            annotation=f"{found.default} is what the class sees",
            related=(*related("adapter", found.place), *related("read", found.read)),
            help="Serve with a release whose adapter copies the key, or export the draft in the engine's own format.",
            identity=(engine, found.adapter, found.key),
        )


def _in_source(rule: Rule, engine: EngineFacts, keys: list[DroppedKey]) -> Iterator[Finding]:
    """Only keys that an adapter of another kind of draft hands on to the same class: others may have no such source."""
    by_adapter: dict[Place, list[DroppedKey]] = {}
    for found in keys:
        if found.handed_on is not None:
            by_adapter.setdefault(found.place, []).append(found)
    for place, group in by_adapter.items():
        names = joined_with_and(tuple(dict.fromkeys(found.key for found in group)))
        first = group[0]
        yield rule.finding(
            f"the adapter of {first.adapter} configs does not hand on {names}, which the draft's class reads and the "
            f"adapter of {first.handed_on} configs hands on: a draft that sets it runs without",
            place.span,
            confidence="likely",
            annotation="not copied here",
            related=(*related("read", first.read), *related("handed on", first.handed_on_at)),
            help=f"Copy {names} from config_dict to pre_trained_config.",
            identity=(engine.label, first.adapter, names),
        )


def _literal(text: str) -> object:
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value
