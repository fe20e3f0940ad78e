"""The difference of two engines or releases as lines, classes with the same change together."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.engines.difference import Difference

__all__ = ["difference_lines"]


def difference_lines(found: Difference) -> Iterator[str]:
    yield f"{found.before} -> {found.after}"
    changed: dict[str, tuple[str, ...]] = {}
    for change in found.changes:
        changed[change.target_class] = (*changed.get(change.target_class, ()), str(change))
    together: dict[tuple[str, ...], list[str]] = {}
    for name, texts in changed.items():
        together.setdefault(texts, []).append(name)
    for texts, classes in together.items():
        yield f"{', '.join(classes)}:"
        yield from (f"  {text}" for text in texts)
    if not found.changes:
        yield "no class for which these ids mean other hidden states"
    before, after = (" or ".join(places) or "nowhere" for places in found.looks_in)
    if before != after:
        yield f"ids were looked for at {before}, now at {after}"
    for title, names in (("new", found.new), ("gone", found.gone), ("not known on both sides", found.unknown)):
        if names:
            yield f"{title}: {', '.join(names)}"
