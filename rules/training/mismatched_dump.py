"""A dump does not hold what the code that wrote it saves, what the dataset takes, or what the draft is fed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Finding, Related, Span
from eaglelint.rule import Facts, Rule

from .._header import state_counts, stated_by_target, target_width
from .._messages import all_known, setter_of, takes_auxiliary_states, trained_row

if TYPE_CHECKING:
    from eaglelint.artifacts.dump import Dump

__all__ = ["RULE"]

# What dumps call the joined input of fc: SpecForge 0.2.0, ModelOpt 0.47.0.
_INPUTS = ("aux_hidden_state", "aux_hidden_states")


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft, dump = facts.draft, facts.dump
    if draft is None or not takes_auxiliary_states(draft):
        return
    other_layers: list[Finding] = []
    if dump is not None:
        other_layers += _ids(rule, draft, dump)
        yield from other_layers
        yield from _width(rule, facts, dump)
        yield from _written(rule, facts, dump)
        yield from _flag(rule, facts, dump)
    if not other_layers:
        yield from _count(rule, facts, draft)


# --- ids -----------------------------------------------------------------------------------------------------------


def _ids(rule: Rule, draft: DraftConfig, dump: Dump) -> Iterator[Finding]:
    """The layers of the manifest against those of the config, whichever of two ways each of them counts in."""
    if dump.ids is None or not draft.layer_ids:
        return
    dumped = dump.ids.values
    wanted = draft.layer_ids[0]
    if any({value + shift for value in ids.values} <= set(dumped) for ids in draft.layer_ids for shift in (0, 1, -1)):
        return
    yield rule.finding(
        f"the dump holds the states of layers {list(dumped)} ({dump.ids.key}), and the draft's config names "
        f"{list(wanted.values)}: in no way of counting do the one hold the other",
        wanted.span,
        confidence="likely",
        annotation=f"{len(wanted.values)} layers",
        related=(Related("dumped", f"{dump.ids.key} {list(dumped)}", dump.ids.span),),
        help="Dump the layers that the draft is fed: a default for another number of layers is another list.",
        identity=("ids", str(list(dumped)), str(list(wanted.values))),
    )


# --- what the sample holds -----------------------------------------------------------------------------------------


def _width(rule: Rule, facts: Facts, dump: Dump) -> Iterator[Finding]:
    width = stated_by_target(facts.target, "hidden_size")
    matrices = [entry for entry in dump.entries.values() if len(entry.shape) > 1 and entry.shape[-1] > 1]
    if (
        width is None
        or not matrices
        or facts.target is None
        or any(count for count, _ in dump.states(facts.target).values())
    ):
        return
    widths = ", ".join(f"{entry.key} {entry}" for entry in matrices[:4])
    yield rule.finding(
        f"no tensor of the sample is as wide as the target's states, {width.value}: {widths}",
        dump.span,
        confidence="likely",
        related=(Related("target", str(width), width.span),),
        help="Check that this dump was made with this target.",
        identity=("width", str(width.value)),
    )


def _written(rule: Rule, facts: Facts, dump: Dump) -> Iterator[Finding]:
    """The sample against the code that saves."""
    saved = facts.practice.saved if facts.practice is not None else ()
    if dump.sample is None or facts.target is None or not saved:
        return
    sample = dump.states(facts.target)
    for states in saved:
        count = sample[states.key][0] if states.key in sample else None
        if count is not None and count and count != len(states.slots):
            yield rule.finding(
                f"{len(states.slots)} states are saved under {states.key!r}, and the sample holds {count} there "
                f"({dump.entries[states.key]})",
                states.place.span,
                confidence="likely",
                related=(Related("dumped", f"{states.key} {dump.entries[states.key]}", dump.span),),
                help="The dump was not made by this code as it stands: make it again, or name the code that made it.",
                identity=("written", states.key, str(len(states.slots)), str(count)),
            )
    keys = {states.key for states in saved if states.key}
    if keys and not keys & sample.keys():
        place = saved[0].place
        yield rule.finding(
            f"the code saves {', '.join(map(repr, sorted(keys)))}, and the sample holds "
            f"{', '.join(map(repr, sorted(dump.entries)[:6]))}",
            place.span,
            confidence="likely",
            related=(Related("dumped", dump.sample, dump.span),),
            help="The dump was not made by this code: name the code that made it.",
            identity=("keys", *sorted(keys)),
        )


def _flag(rule: Rule, facts: Facts, dump: Dump) -> Iterator[Finding]:
    """The dump's word on the norm against the state that the code saves as the label."""
    training, norm = facts.training, dump.norm
    label = None if training is None else training.label
    if norm is None or label is None or training is None or training.declared or label.form not in ("stream", "norm"):
        return
    if (label.form == "stream") != norm.prenorm:
        yield rule.finding(
            f"the dump says that its last state was taken {'before' if norm.prenorm else 'after'} the final norm "
            f"({norm.key}), and the code saves {label}",
            norm.span,
            confidence="likely",
            related=trained_row(training),
            help="Write the flag as the code captures, or make the dump again.",
            identity=("norm", norm.key, str(label)),
        )


# --- how many states feed fc ---------------------------------------------------------------------------------------


def _count(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    taken = _taken(facts, draft)
    if taken is None:
        return
    count, why, span = taken
    training, practice, dump = facts.training, facts.practice, facts.dump
    # With an engine at hand, what is trained is compared with what is served, slot by slot (CAP002).
    if training is not None and all_known(training) and not training.declared:
        setter = setter_of(training)
        if len(training.slots) != count and not facts.servings and setter is not None:
            yield rule.finding(
                f"the training code feeds fc {len(training.slots)} states, {training}, and the draft's fc takes "
                f"{count}: {why}",
                Span.at(setter.path, setter.line),
                confidence="certain" if training.status == "exact" else "likely",
                related=() if span is None else (Related("draft", why, span),),
                help="Feed as many states as the draft has columns for; the label is none of them.",
                identity=("trained", str(training), str(count)),
            )
        return
    if practice is not None and practice.loads is not None and len(practice.loads) != count:
        place = practice.load_place
        label = "" if practice.loaded_label is None else f", the one at {practice.loaded_label} being the label"
        yield rule.finding(
            f"of the states of a sample the dataset feeds fc {len(practice.loads)}{label}, and the draft's fc takes "
            f"{count}: {why}",
            place.span if place is not None else (span or draft.span()),
            confidence="likely",
            related=(*_dumped(dump), *(() if span is None else (Related("draft", why, span),))),
            help="Dump the label beside the inputs where the dataset takes the last state off, and only there.",
            identity=("loaded", str(len(practice.loads)), str(count)),
        )
    elif (practice is None or practice.loads is None) and dump is not None and facts.target is not None:
        sample = dump.states(facts.target)
        found = next((key for key in _INPUTS if key in sample and sample[key][0]), None)
        if found is not None and sample[found][0] not in (count, count if sample[found][1] == "joined" else count + 1):
            yield rule.finding(
                f"{found} holds {sample[found][0]} states ({dump.entries[found]}), and the draft's fc takes {count}: "
                f"{why}",
                dump.span,
                confidence="likely",
                related=() if span is None else (Related("draft", why, span),),
                help="Dump the layers that the draft is fed.",
                identity=("sample", found, str(sample[found][0]), str(count)),
            )


def _taken(facts: Facts, draft: DraftConfig) -> tuple[int, str, Span | None] | None:
    """How many states the draft's fc takes: by the checkpoint, else by the config where it says so."""
    width = target_width(draft, facts.target)
    fc = None if facts.checkpoint is None else facts.checkpoint.find("fc.weight")
    if fc is not None and width is not None and len(fc.shape) == 2 and fc.shape[1] % width.value == 0:
        return fc.shape[1] // width.value, f"{fc} over states of {width.value}", Span.at(fc.path, 1)
    counts = {count: (why, span) for count, why, span in state_counts(draft) if span is not None}
    if len(counts) != 1:
        return None
    ((count, (why, span)),) = counts.items()
    return count, why, span


def _dumped(dump: Dump | None) -> tuple[Related, ...]:
    if dump is None or dump.sample is None:
        return ()
    return (
        Related("dumped", ", ".join(f"{entry.key} {entry}" for entry in list(dump.entries.values())[:4]), dump.span),
    )


RULE = Rule(
    code="TRN003",
    name="mismatched-dump",
    summary="A dump does not hold what was saved, what the dataset takes, or what the draft is fed.",
    severity="error",
    check=_check,
)
