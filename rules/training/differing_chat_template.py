"""The chat template is applied with other options in one place than in another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule

from .._training import row

if TYPE_CHECKING:
    from eaglelint.practice import TemplateUse

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    uses = facts.practice.templates if facts.practice is not None else ()
    for name in sorted({name for use in uses for name, _ in use.options}):
        said = [use for use in uses if name in dict(use.options)]
        first = said[0]
        others = (use for use in uses if not use.leaves_open(name))
        other = next((use for use in others if _value(use, name) != _value(first, name)), None)
        if other is None:
            continue
        left, right = sorted((first, other), key=lambda use: use.place.span.start)
        yield rule.finding(
            f"{_says(right, name)}, and {_says(left, name)} at {left.place}: the draft is trained on other tokens "
            "than were generated",
            right.place.span,
            confidence="likely",
            annotation=f"{name} {_shown(right, name)}",
            related=row("other", left.place),
            help=f"Say {name} wherever the template is applied, with one value.",
            identity=(name, right.place.span.path, left.place.span.path),
        )


def _value(use: TemplateUse, name: str) -> object:
    return dict(use.options).get(name)


def _shown(use: TemplateUse, name: str) -> str:
    value = _value(use, name)
    return "left to the template" if value is None else f"{value!r}"


def _says(use: TemplateUse, name: str) -> str:
    what = "the server is asked for a template" if use.asked else "the template is applied"
    value = _value(use, name)
    return f"{what} without {name}" if value is None else f"{what} with {name} {value!r}"


RULE = Rule(
    code="TRN005",
    name="differing-chat-template",
    summary="Generation and training apply the chat template with other options.",
    severity="warning",
    check=_check,
)
