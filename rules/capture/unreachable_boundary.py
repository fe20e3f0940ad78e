"""An id asks for a hidden state that does not exist, that the engine never captures, or at which it stops."""

from __future__ import annotations

from collections.abc import Iterator

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.finding import Edit, Finding, Related, Severity, Span
from eaglelint.rule import Facts, Rule, Served
from eaglelint.wiring import Fault, Slot, Wiring

from .._edits import mended_list
from .._messages import any_known, confidence_of, engine_of, identity_of, ids_read_by, served_rows, switched_off
from ._unreachable_in_source import unreachable_in_source

__all__ = ["RULE"]


def _check(rule: Rule, facts: Facts) -> Iterator[Finding]:
    draft = facts.draft
    if draft is None:
        yield from unreachable_in_source(rule, facts)
        return
    if switched_off(draft):
        return
    derived = [
        served
        for served in facts.servings
        if any_known(served.wiring) or any(fault.path for fault in served.wiring.faults)
    ]
    for served in derived:
        edit = mended_list(facts, served)
        edits = () if edit is None else (edit,)
        lost = tuple(_distinct_uncaptured(served))
        for position in lost:
            yield _uncaptured(rule, draft, served, position, edits)
        for slot, fault in _stops(served):
            yield _stop(rule, draft, served, slot, fault, edits)
        if not served.wiring.slots and not lost:
            yield from _raises(rule, facts, draft, served, edits)
    if not derived:
        yield from _out_of_range(rule, facts, draft)


def _uncaptured(rule: Rule, draft: DraftConfig, served: Served, position: int, edits: tuple[Edit, ...]) -> Finding:
    wiring = served.wiring
    assert isinstance(wiring.layer_ids, tuple)
    layer_id, engine = wiring.layer_ids[position], engine_of(served.wiring)
    boundary = _boundary_asked_for(served, layer_id)
    depth = wiring.num_layers
    if boundary is not None and depth is not None and not 0 <= boundary <= depth:
        asks = f"id {layer_id} asks for h[{boundary}] of a target that has {depth} layers"
    else:
        state = "a state" if boundary is None else f"h[{boundary}]"
        asks = f"id {layer_id} asks for {state}, which {wiring.target_class or 'the target'} never captures"
    fault = next((fault for fault in wiring.faults if fault.path), None)
    if wiring.slots:
        confidence = confidence_of(wiring)
        message = f"{asks}: in {engine} fc gets {len(wiring.slots)} of {len(wiring.layer_ids)} states"
    elif fault is not None:
        confidence = "likely"
        message = f"{asks}: {engine} stops with {_kind(fault)} at {fault.path}:{fault.line}"
    else:
        confidence = "possible"
        message = f"{asks} in {engine}"
    severity: Severity = "warning" if confidence == "possible" else "error"
    return rule.finding(
        message,
        _place(draft, wiring, position),
        confidence=confidence,
        severity=severity,
        annotation=f"never captured in {wiring.name}",
        related=served_rows(wiring) or _fault_row(fault),
        help=f"Serve with a release that captures this state, or train on a state that {engine} reaches."
        if not edits
        else None,
        edits=edits,
        identity=identity_of(_key_path(draft, wiring), wiring, f"id {layer_id}"),
    )


def _stop(
    rule: Rule, draft: DraftConfig, served: Served, position: int | None, fault: Fault, edits: tuple[Edit, ...]
) -> Finding:
    """A state that is captured where one of its parts does not exist yet."""
    wiring = served.wiring
    name = "a slot" if position is None else f"slot {position}"
    layer_id = None
    if position is not None and isinstance(wiring.layer_ids, tuple) and _pairs_up(wiring):
        layer_id = wiring.layer_ids[position]
        name += f" (id {layer_id})"
    where = f" is the state before layer {fault.boundary}, where" if fault.boundary is not None else ":"
    why = fault.message.replace(" is None", " is still None") if fault.boundary == 0 else fault.message
    certain = not wiring.conditions and sum(not slot.known for slot in wiring.slots) == 1
    return rule.finding(
        f"{name}{where} {why}: {engine_of(wiring)} stops with TypeError at {fault.path}:{fault.line}",
        _place(draft, wiring, position if layer_id is not None else None),
        confidence="certain" if certain else "likely",
        annotation=f"stops in {wiring.name}",
        related=(*served_rows(wiring), *_fault_row(fault)),
        edits=edits,
        identity=identity_of(_key_path(draft, wiring), wiring, f"stops at {fault.boundary}"),
    )


def _raises(rule: Rule, facts: Facts, draft: DraftConfig, served: Served, edits: tuple[Edit, ...]) -> Iterator[Finding]:
    """An exception on every path, where an id at the edge of the model explains it; others are no proof of a "
    "fault."""
    wiring = served.wiring
    fault = next((fault for fault in wiring.faults if fault.path), None)
    depth = wiring.num_layers or (facts.target.num_layers if facts.target is not None else None)
    if fault is None or depth is None or not isinstance(wiring.layer_ids, tuple):
        return
    for position, layer_id in enumerate(wiring.layer_ids):
        if layer_id < 0:
            what = f"id {layer_id} lies before the first layer"
        elif layer_id >= depth:
            what = f"id {layer_id} lies past the last layer, {depth - 1}"
        elif layer_id == depth - 1:
            what = f"id {layer_id} is the last layer"
        else:
            continue
        yield rule.finding(
            f"{what}: {engine_of(wiring)} stops with {_kind(fault)} at {fault.path}:{fault.line} ({_detail(fault)})",
            _place(draft, wiring, position),
            confidence="likely",
            annotation=f"stops in {wiring.name}",
            related=_fault_row(fault),
            edits=edits,
            identity=identity_of(_key_path(draft, wiring), wiring, f"id {layer_id}"),
        )
        return


def _out_of_range(rule: Rule, facts: Facts, draft: DraftConfig) -> Iterator[Finding]:
    """Without an engine: ids that are wrong however they are counted."""
    depth = None if facts.target is None else facts.target.num_layers
    for ids in draft.layer_ids:
        for position, layer_id in enumerate(ids.values):
            if layer_id in ids.values[:position] or not (layer_id < -1 or (depth is not None and layer_id > depth)):
                continue
            rows: tuple[Related, ...] = ()
            if depth is None:
                why = "the lowest id in use is -1, the embedding where ids count layer outputs"
            else:
                why = f"the target has {depth} layers, so ids lie between -1 and {depth}"
                span = facts.target.num_layers_span if facts.target is not None else None
                rows = () if span is None else (Related("target", f"{depth} layers", span),)
            yield rule.finding(
                f"id {layer_id} is out of range however ids are counted: {why}",
                ids.item_spans[position],
                confidence="certain",
                related=rows,
                help="Check that this is the draft's own target, and write the ids that the draft was trained on.",
                identity=(".".join(ids.key_path), f"id {layer_id}"),
            )


def _distinct_uncaptured(served: Served) -> Iterator[int]:
    """Positions whose state is lost; a repeated id is not lost but captured once, which is CAP004's to say."""
    ids, wiring = served.wiring.layer_ids, served.wiring
    if isinstance(ids, tuple) and (any_known(wiring) or not wiring.slots):
        yield from (index for index in served.uncaptured if index < len(ids) and ids[index] not in ids[:index])


def _stops(served: Served) -> Iterator[tuple[int | None, Fault]]:
    """Faults of the code that explain an unknown slot, each with that slot; others may be the interpreter's own."""
    slots = served.wiring.slots
    seen: set[tuple[str, int, int | None]] = set()
    for fault in served.wiring.faults:
        key = (fault.path, fault.line, fault.boundary)
        if not slots or not fault.path or key in seen:
            continue
        seen.add(key)
        unknown = [index for index, slot in enumerate(slots) if not slot.known]
        if fault.slot is not None:
            yield fault.slot, fault
        elif fault.boundary is not None:
            between = [index for index in unknown if _lies_between(slots, index, fault.boundary)]
            if between:
                yield between[0] if len(between) == 1 else None, fault


def _lies_between(slots: tuple[Slot, ...], index: int, boundary: int) -> bool:
    """Whether ``boundary`` fits between the known slots around an unknown one."""
    before = all(slot.boundary is None or slot.boundary < boundary for slot in slots[:index])
    after = all(slot.boundary is None or slot.boundary > boundary for slot in slots[index + 1 :])
    return before and after


def _pairs_up(wiring: Wiring) -> bool:
    """Whether slot k belongs to the k-th id: captured in the order of the layers, the ids ascending."""
    ids = wiring.layer_ids
    return isinstance(ids, tuple) and len(ids) == len(wiring.slots) and list(ids) == sorted(set(ids))


def _boundary_asked_for(served: Served, layer_id: int) -> int | None:
    """The boundary that an id means, by the distance that all captured ids have to theirs."""
    wiring = served.wiring
    assert isinstance(wiring.layer_ids, tuple)
    captured = sorted({i for index, i in enumerate(wiring.layer_ids) if index not in served.uncaptured})
    boundaries = [slot.boundary for slot in wiring.slots]
    if not captured or len(captured) != len(boundaries):
        return None
    distances = {None if boundary is None else boundary - i for i, boundary in zip(captured, boundaries, strict=True)}
    distance = distances.pop() if len(distances) == 1 else None
    return None if distance is None else layer_id + distance


def _place(draft: DraftConfig, wiring: Wiring, position: int | None) -> Span:
    ids = ids_read_by(draft, wiring)
    if ids is None:
        return draft.span()
    return ids.item_spans[position] if position is not None and position < len(ids.values) else ids.span


def _key_path(draft: DraftConfig, wiring: Wiring) -> tuple[str, ...]:
    ids = ids_read_by(draft, wiring)
    return ("default",) if ids is None else ids.key_path


def _fault_row(fault: Fault | None) -> tuple[Related, ...]:
    return () if fault is None else (Related("stops", _detail(fault), Span.at(fault.path, fault.line)),)


def _kind(fault: Fault) -> str:
    kind, colon, _ = fault.message.partition(":")
    return kind if colon and kind.isidentifier() else "an error"


def _detail(fault: Fault) -> str:
    """What the exception says, without its name where that is said already."""
    kind, colon, rest = fault.message.partition(":")
    return rest.strip() if colon and kind.isidentifier() and rest.strip() else fault.message


RULE = Rule(
    code="CAP003",
    name="unreachable-boundary",
    summary="An id asks for a hidden state that does not exist or that the engine cannot capture.",
    severity="error",
    check=_check,
)
