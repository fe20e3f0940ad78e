"""One row of the train-to-serve matrix for a draft: which engines serve what was trained, and the edit for others."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.rule import Facts, Served
from eaglelint.wiring import compare

__all__ = ["verdicts"]


def verdicts(facts: Facts) -> Iterator[str]:
    """A sentence for each engine that serves the draft; none where it is not known what was trained."""
    training = facts.training
    if training is None or not training.slots or any(not slot.known for slot in training.slots):
        return
    for served in facts.servings:
        wiring = served.wiring
        name = wiring.name.removesuffix(f" ({wiring.target_class})") if wiring.target_class else wiring.name
        if not wiring.slots or any(not slot.known for slot in wiring.slots):
            yield f"{name}: not known whether it serves what was trained"
            continue
        proviso = "" if {training.status, wiring.status} == {"exact"} else ", under the conditions below"
        if not compare(training, wiring):
            yield f"{name}: serves what was trained{proviso}"
        else:
            yield f"{name}: serves something else than was trained{proviso}; {_edit(served)}"


def _edit(served: Served) -> str:
    place = served.wiring.ids_from or (served.looks_in[0] if served.looks_in else None)
    if served.option is not None:
        return f"give {served.option[0]} {list(served.option[1])}"
    if served.mended_ids is None or place is None:
        return "no list of ids makes it serve that"
    return f"write {list(served.mended_ids)} in {'.'.join(place)} (--fix does, with this engine alone)"
