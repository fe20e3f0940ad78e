"""What changed between two engines or releases: which ids mean other hidden states, class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eaglelint.artifacts.draft_kinds import IDS_KEYS
from eaglelint.artifacts.target import TargetConfig
from eaglelint.derive import ServingRequest
from eaglelint.serving import ServingEnd
from eaglelint.source.tree import Binding
from eaglelint.wiring import LayerIds, Wiring

__all__ = ["Change", "Difference", "compare_ends", "usual_ids"]


@dataclass(frozen=True, slots=True)
class Change:
    """One target class for which the same ids, or the default list, bring other states."""

    target_class: str
    layer_ids: LayerIds
    before: Wiring
    after: Wiring

    def __str__(self) -> str:
        subject = "the default list" if self.layer_ids == "default" else f"ids {list(self.layer_ids or ())}"
        one = self.layer_ids == "default"
        return f"{subject} meant {_states(self.before)}, now mean{'s' if one else ''} {_states(self.after)}"


@dataclass(frozen=True, slots=True)
class Difference:
    """What two ends serve differently.

    Attributes:
        new, gone: Classes that capture states only in the second, only in the first.
        unknown: Classes of both of which at least one answer is not known.
        looks_in: Where each finds ids in a draft's config.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    unknown: tuple[str, ...]
    looks_in: tuple[tuple[str, ...], tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "before": self.before,
            "after": self.after,
            "changes": [
                {
                    "target_class": change.target_class,
                    "layer_ids": list(change.layer_ids) if isinstance(change.layer_ids, tuple) else change.layer_ids,
                    "before": {"slots": [*map(str, change.before.slots)], "status": change.before.status},
                    "after": {"slots": [*map(str, change.after.slots)], "status": change.after.status},
                }
                for change in self.changes
            ],
            "new": list(self.new),
            "gone": list(self.gone),
            "unknown": list(self.unknown),
            "looks_in": {"before": list(self.looks_in[0]), "after": list(self.looks_in[1])},
        }


def usual_ids(num_layers: int) -> list[LayerIds]:
    """Lists that tell conventions apart: the default, its two spellings, and one with the last layer."""
    middle = num_layers // 2
    return [
        "default",
        (2, middle, num_layers - 3),
        (1, middle - 1, num_layers - 4),
        (2, middle, num_layers - 1),
    ]


def compare_ends(
    before: ServingEnd,
    after: ServingEnd,
    kind: str,
    num_layers: int,
    lists: Sequence[LayerIds],
    progress: Callable[[str], None] = lambda _: None,
) -> Difference:
    """Compare two ends for some lists of ids; only what is known on both sides counts as changed."""
    left, right = _classes(before, kind), _classes(after, kind)
    changes, unknown = [], []
    for name in sorted(left.keys() & right.keys()):
        progress(f"comparing {name}")
        for ids in lists:
            old = _wiring(before, left[name], kind, num_layers, ids)
            new = _wiring(after, right[name], kind, num_layers, ids)
            if not _told(old) or not _told(new):
                unknown.append(name)
            elif old.slots != new.slots:
                changes.append(Change(name, ids, old, new))
    return Difference(
        before.label,
        after.label,
        tuple(changes),
        tuple(sorted(right.keys() - left.keys())),
        tuple(sorted(left.keys() - right.keys())),
        tuple(dict.fromkeys(unknown)),
        (_places(before, left, kind, num_layers), _places(after, right, kind, num_layers)),
    )


def _classes(end: ServingEnd, kind: str) -> dict[str, Binding | str]:
    return {
        found if isinstance(found, str) else getattr(found.item, "name", ""): found
        for found in end.target_classes(kind)
    }


def _wiring(end: ServingEnd, target_class: Binding | str, kind: str, num_layers: int, ids: LayerIds) -> Wiring:
    data = TargetConfig.synthetic(num_layers).data
    return end.wiring(ServingRequest(target_class, num_layers, data, kind, None, ids))


def _told(wiring: Wiring) -> bool:
    """Whether it is known what happens: all states, or where the engine stops."""
    return (bool(wiring.slots) and all(slot.known for slot in wiring.slots)) or bool(wiring.faults)


def _states(wiring: Wiring) -> str:
    return str(wiring) if wiring.slots else "a stop" + (f" ({wiring.faults[0].message})" if wiring.faults else "")


def _places(end: ServingEnd, classes: dict[str, Binding | str], kind: str, num_layers: int) -> tuple[str, ...]:
    """The key paths of a draft's config at which ids are found, tried one by one."""
    target_class = classes.get("LlamaForCausalLM") or next(iter(classes.values()), None)
    if target_class is None:
        return ()
    request = ServingRequest(target_class, num_layers, TargetConfig.synthetic(num_layers).data, kind, {})
    parents: tuple[tuple[str, ...], ...] = ((), ("eagle_config",), ("dflash_config",))
    candidates = [(*parent, key) for parent in parents for key in IDS_KEYS]
    return tuple(".".join(place) for place in candidates if end.reads_ids_at(request, place))
