"""What becomes of the draft depends on the engine: the newest releases feed it other states, or lack its class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eaglelint.artifacts.draft import DraftConfig, DraftLayerIds
from eaglelint.engines.profile import ANY_TARGET
from eaglelint.finding import Finding
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import Slot, Wiring

from .._messages import (
    all_known,
    confidence_of,
    engine_of,
    ids_read_by,
    joined_with_and,
    key_phrase,
    served_rows,
    switched_off,
)

__all__ = ["RULE"]

# More slots than this are a training that kept every layer, and fill a page.
_MOST_SLOTS_SHOWN = 12


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None or switched_off(draft):
        return
    yield from _unregistered(rule, facts, draft)
    if not facts.elsewhere:
        return
    known = [served.wiring for served in facts.elsewhere if all_known(served.wiring)]
    groups = _groups(known)
    trained = facts.training if facts.training is not None and all_known(facts.training) else None
    if len(groups) > 1 or (trained is not None and groups and trained.slots not in groups):
        yield _differing(rule, draft, facts.elsewhere, groups, trained)
    elif facts.target is None and draft.layer_ids:
        yield from _overlooked(rule, draft, facts.elsewhere)
    yield from _unserved(rule, facts, draft)


def _unregistered(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """Releases that do not have the draft's class, beside others that have it."""
    having = [engine for engine, registered in facts.registered_elsewhere if registered]
    lacking = [engine for engine, registered in facts.registered_elsewhere if not registered]
    if not having or not lacking:
        return
    name, place = draft.architectures[0], draft.node("architectures", "0")
    yield rule.finding(
        f"{joined_with_and(lacking)} {_verb(lacking, 'register')} no class {name}, and {joined_with_and(having)} "
        f"{'does' if len(having) == 1 else 'do'}: where there is none, a server stops, or loads the draft as something "
        "else",
        draft.span("architectures") if place is None else place.span,
        confidence="likely",
        help=f"Name the engine and release that serve this draft, such as --serving {having[0].replace(' ', '==')}.",
        identity=("registered", name, *lacking),
    )


def _groups(wirings: Iterable[Wiring]) -> dict[tuple[Slot, ...], list[Wiring]]:
    """The engines by what they serve; those that read the draft's ids first."""
    groups: dict[tuple[Slot, ...], list[Wiring]] = {}
    for wiring in sorted(wirings, key=_by_default):
        groups.setdefault(wiring.slots, []).append(wiring)
    return groups


def _by_default(wiring: Wiring) -> bool:
    return wiring.layer_ids == "default"


def _differing(
    rule: Rule,
    draft: DraftConfig,
    elsewhere: tuple[Served, ...],
    groups: dict[tuple[Slot, ...], list[Wiring]],
    trained: Wiring | None,
) -> Finding:
    wirings = [wiring for group in groups.values() for wiring in group]
    served = "; ".join(f"{_shown(group[0])} by {_engines(draft, group)}" for group in groups.values())
    message = f"what this draft is served depends on the engine: {served}" if len(groups) > 1 else f"served {served}"
    if trained is not None:
        message += f"; {'by the config alone, ' if trained.inferred else ''}it was trained on {_shown(trained)}"
    ids = _ids(draft, wirings)
    return rule.finding(
        message,
        draft.span() if ids is None else ids.span,
        confidence=confidence_of(*wirings),
        related=tuple(row for group in groups.values() for row in served_rows(group[0])[:1]),
        help="\n".join((*_places(draft, elsewhere), _name_it(elsewhere))),
        identity=("served", *(f"{engine_of(wiring)} {wiring}" for wiring in wirings)),
    )


def _shown(wiring: Wiring) -> str:
    if len(wiring.slots) <= _MOST_SLOTS_SHOWN:
        return str(wiring)
    return f"{wiring.slots[0]} ⊕ {wiring.slots[1]} ⊕ … ⊕ {wiring.slots[-1]} ({len(wiring.slots)} states)"


def _name_it(elsewhere: tuple[Served, ...]) -> str:
    named = [served.wiring for served in elsewhere if served.wiring.target_class != ANY_TARGET]
    example = f"{named[0].engine}=={named[0].engine_version}" if named else "ENGINE==VERSION"
    return f"Name the engine and release that serve this draft, such as --serving {example}: it is then judged by them."


def _engines(draft: DraftConfig, group: list[Wiring]) -> str:
    """The engines of a group, and those of them that pass over the config's ids."""
    default = [engine_of(wiring) for wiring in group if _by_default(wiring)]
    reading = [engine_of(wiring) for wiring in group if not _by_default(wiring)]
    if not default:
        return joined_with_and(reading)
    why = f"which {_verb(default, 'take')} {'its' if len(default) == 1 else 'their'} default"
    if draft.layer_ids:
        why = f"which {_verb(default, 'read')} none of its ids"
    by_default = f"{joined_with_and(default)}, {why}"
    return f"{joined_with_and(reading)}, and by {by_default}" if reading else by_default


def _overlooked(rule: Rule, draft: DraftConfig, elsewhere: tuple[Served, ...]) -> Iterator[Finding]:
    """Without a target: one engine takes the ids, another does not look where they are."""
    reading = [served.wiring for served in elsewhere if not _by_default(served.wiring)]
    default = [engine_of(served.wiring) for served in elsewhere if _by_default(served.wiring)]
    ids = _ids(draft, reading)
    if not reading or not default or ids is None:
        return
    readers = [engine_of(wiring) for wiring in reading]
    yield rule.finding(
        f"{joined_with_and(readers)} {_verb(readers, 'take')} the ids of {key_phrase(ids.key_path)}, and "
        f"{joined_with_and(default)} {_verb(default, 'take')} a default of {'its' if len(default) == 1 else 'their'} "
        "own: whether those are the same states depends on the target",
        ids.span,
        confidence="possible",
        help="\n".join((*_places(draft, elsewhere), "Name the target with --target, and the engine with --serving.")),
        identity=("read", *readers, *default),
    )


def _unserved(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """Releases that stop with this draft, beside others that serve it."""
    stopped: dict[str, list[str]] = {}
    for served in facts.elsewhere:
        wiring = served.wiring
        # What becomes of a draft without ids is CAP001's to say.
        if wiring.faults and (draft.layer_ids or _lacks_setter(wiring)):
            stopped.setdefault(_why(wiring), []).append(engine_of(wiring))
    if not stopped or facts.target is None:
        return
    wirings = [served.wiring for served in facts.elsewhere if served.wiring.target_class != ANY_TARGET]
    others = [engine_of(wiring) for wiring in wirings if wiring.slots and not wiring.faults]
    rest = f"; {joined_with_and(others)} {_verb(others, 'serve')} it" if others else ""
    for why, engines in stopped.items():
        yield rule.finding(
            f"{joined_with_and(engines)} {_verb(engines, 'stop')} with this draft: {why}{rest}",
            facts.target.span("architectures") or draft.span(),
            confidence="certain",
            help=_name_it(facts.elsewhere),
            identity=("stops", why, *engines),
        )


def _verb(subjects: list[str], verb: str) -> str:
    return f"{verb}s" if len(subjects) == 1 else verb


def _lacks_setter(wiring: Wiring) -> bool:
    return any(fault.message.startswith("NoSetter") for fault in wiring.faults)


def _why(wiring: Wiring) -> str:
    return wiring.faults[0].message.removeprefix("NoSetter: ")


def _ids(draft: DraftConfig, wirings: Iterable[Wiring]) -> DraftLayerIds | None:
    """The list that the note is about: the first that an engine reads."""
    read = next((ids for wiring in wirings if (ids := ids_read_by(draft, wiring)) is not None), None)
    return read or next(iter(draft.layer_ids), None)


def _places(draft: DraftConfig, elsewhere: tuple[Served, ...]) -> Iterator[str]:
    """Where the engines that took their default look for ids first, those with the same place together."""
    looks: dict[str, list[str]] = {}
    for served in elsewhere if draft.layer_ids else ():
        if served.looks_in and (served.wiring.slots or not served.wiring.target_class):
            looks.setdefault(key_phrase(served.looks_in[0]), []).append(engine_of(served.wiring))
    for place, engines in looks.items():
        yield f"{joined_with_and(engines)} {_verb(engines, 'look')} for ids in {place}."


RULE = Rule(
    code="CFG009",
    name="engine-bound",
    summary="The newest releases of the engines make different states of one config, and nobody named an engine.",
    severity="note",
    check=_check,
)
