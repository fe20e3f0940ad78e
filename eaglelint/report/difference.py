"""The difference of two engines or releases as lines or pictures, classes with the same change together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eaglelint.engines.difference import Change, Difference
from eaglelint.report.picture import Panel
from eaglelint.wiring import Wiring

__all__ = ["difference_lines", "difference_panels", "other_lines"]


def difference_panels(found: Difference) -> tuple[Panel, ...]:
    """A picture for each change: what the same ids meant before and mean now, with the classes that it holds for."""
    together: dict[tuple[object, ...], list[Change]] = {}
    for change in found.changes:
        # What is served decides; the lines that prove it are those of the first class.
        together.setdefault((change.layer_ids, _bare(change.before), _bare(change.after)), []).append(change)
    shown = []
    for changes in together.values():
        first, ids = changes[0], changes[0].layer_ids
        classes = [change.target_class for change in changes]
        subject = "the default list" if ids == "default" else f"ids {list(ids or ())}"
        about = f"{subject}: {', '.join(classes[:3])}" + (f" and {len(classes) - 3} more" if len(classes) > 3 else "")
        before = replace(first.before, name=found.before)
        after = replace(first.after, name=found.after)
        shown.append(Panel(before, after, ("before", "after"), about))
    return tuple(shown)


def _bare(wiring: Wiring) -> tuple[object, ...]:
    return wiring.slots, wiring.status, bool(wiring.faults)


def other_lines(found: Difference) -> Iterator[str]:
    """What is not a change of states: where ids are looked for, and classes of one side alone."""
    if not found.changes:
        yield "no class for which these ids mean other hidden states"
    before, after = (" or ".join(places) or "nowhere" for places in found.looks_in)
    if before != after:
        yield f"ids were looked for at {before}, now at {after}"
    for title, names in (("new", found.new), ("gone", found.gone), ("not known on both sides", found.unknown)):
        if names:
            yield f"{title}: {', '.join(names)}"


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
    yield from other_lines(found)
