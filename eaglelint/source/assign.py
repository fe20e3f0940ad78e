"""Storing a value in a name, an attribute, an item, or several of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import libcst as cst

from eaglelint.source.expressions import evaluate, evaluate_index
from eaglelint.source.lookup import find_method, find_setter, is_module
from eaglelint.source.machine import Machine, Raised
from eaglelint.source.slices import Site
from eaglelint.source.values import (
    BoundMethod,
    Branch,
    ClassValue,
    Dim,
    External,
    Frame,
    Instance,
    LayerOutput,
    ModuleItems,
    Opaque,
    Tensor,
    TensorBuffer,
    TensorView,
    Term,
    Unknown,
)

__all__ = ["assign", "bind_name", "delete", "part_of", "set_attribute", "sited", "unpack"]


def assign(machine: Machine, target: cst.BaseExpression, value: Any, frame: Frame) -> None:
    """Bind a target of an assignment, a loop or a ``with`` to a value."""
    binder = _BINDERS.get(type(target))
    if binder is not None:
        binder(machine, target, value, frame)


def _bind_name(machine: Machine, target: cst.Name, value: Any, frame: Frame) -> None:
    bind_name(machine, target.value, value, frame)


def bind_name(machine: Machine, name: str, value: Any, frame: Frame) -> None:
    """Set a variable: a local one, unless the function says that it is another's."""
    env = frame.env
    if env.elsewhere is None or name not in env.elsewhere:
        env.variables[name] = value
        return
    outer = env.elsewhere[name]
    if outer is not None:
        machine.heap.set(outer.variables, name, value)
    else:
        machine.heap.set(machine.globals, (frame.module.name, name), value)


def _bind_attribute(machine: Machine, target: cst.Attribute, value: Any, frame: Frame) -> None:
    receiver = evaluate(machine, target.value, frame)
    set_attribute(machine, receiver, target.attr.value, value, Site(frame.slice, target), frame)


def _bind_several(machine: Machine, target: cst.Tuple | cst.List, value: Any, frame: Frame) -> None:
    elements = target.elements
    star = next((i for i, element in enumerate(elements) if type(element) is cst.StarredElement), None)
    values = unpack(machine, value, len(elements), star, Site(frame.slice, target))
    for element, item in zip(elements, values, strict=True):
        assign(machine, element.value, item, frame)


def _bind_item(machine: Machine, target: cst.Subscript, value: Any, frame: Frame) -> None:
    receiver = evaluate(machine, target.value, frame)
    key = evaluate_index(machine, target, frame)
    _set_item(machine, receiver, key, value, Site(frame.slice, target))


_BINDERS: dict[type[cst.CSTNode], Callable[[Machine, Any, Any, Frame], None]] = {
    cst.Name: _bind_name,
    cst.Attribute: _bind_attribute,
    cst.Tuple: _bind_several,
    cst.List: _bind_several,
    cst.Subscript: _bind_item,
}


def unpack(machine: Machine, value: Any, count: int, star: int | None, site: Site) -> list[Any]:
    """Split a value over ``count`` targets, of which the one at ``star`` takes the rest.

    Raises:
        Raised: The value is known to have another number of items.
    """
    if isinstance(value, Instance) and value.payload is not None:
        value = value.payload
    if isinstance(value, list | tuple | range | str):
        items = list(value)
        if star is not None and len(items) >= count - 1:
            left_over = len(items) - (count - 1)
            return [*items[:star], items[star : star + left_over], *items[star + left_over :]]
        if len(items) != count:
            raise Raised("ValueError", f"{len(items)} values for {count} names", site)
        return items
    if isinstance(value, LayerOutput):
        first = value.hidden if value.residual is not None else value.whole
        rest = [value.residual] if value.residual is not None else []
        return [first, *rest, *(Unknown("a further result of a layer") for _ in range(count - 1 - len(rest)))]
    if isinstance(value, Tensor):
        term = value.single()
        if isinstance(term, Branch):
            return [part_of(term, index) for index in range(count)]
        # Iterating a tensor, or a result that was not followed: each part is as unknown as the whole.
        if not isinstance(term, Opaque) or term.serial is None:
            term = machine.opaque("one of several results that could not be followed", site).single()
        return [part_of(term, index) for index in range(count)]
    why = value.why if isinstance(value, Unknown) else "part of a value that is not known"
    return [Unknown(why) for _ in range(count)]


def part_of(term: Term | None, index: int) -> Tensor:
    """One of several results of a call that was not followed."""
    if isinstance(term, Branch):
        return Tensor.of(Branch(term.layer, term.serial, f"{term.what}[{index}]"))
    assert isinstance(term, Opaque)
    return Tensor.of(replace(term, part=(*term.part, index)))


def set_attribute(machine: Machine, receiver: Any, name: str, value: Any, site: Site, frame: Frame | None) -> None:
    """Set an attribute of an object; on tensors only the mark is kept, elsewhere nothing."""
    if not isinstance(receiver, Instance):
        if isinstance(receiver, ClassValue | External | Unknown):
            owner = receiver.info.name if isinstance(receiver, ClassValue) else ""
            if not (machine.script and isinstance(value, Unknown)) or (owner, name) in machine.patches:
                machine.heap.set(machine.patches, (owner, name), value)  # else it is as unknown as it was
            if machine.script:
                machine.record("set", name, value, site)
        return
    value = _registered(machine, receiver, name, value, site)
    if frame is not None and frame.initialising is receiver and receiver.building:
        machine.heap.set(receiver.building[-1], name, value)
        return
    if receiver.cls is not None:
        setter = find_setter(machine, receiver.cls, name)
        if setter is not None:
            from eaglelint.source.calls import call_value

            call_value(machine, BoundMethod(setter, receiver), (value,), {}, site)
            return
        own = find_method(machine, receiver.cls, "__setattr__")
        # Whoever starts a run may say, as an intercept, that it does no more than to keep the value.
        if own is not None and (own.owner is None or f"{own.owner.info.name}.__setattr__" not in machine.intercepts):
            from eaglelint.source.calls import call_value

            call_value(machine, BoundMethod(own, receiver), (name, value), {}, site)
            return
    keep_attribute(machine, receiver, name, value, site)


def keep_attribute(machine: Machine, receiver: Instance, name: str, value: Any, site: Site) -> None:
    """Set an attribute of an object as ``object.__setattr__`` does."""
    machine.heap.set(receiver.attrs, name, value)
    if any(value is watched for watched in machine.watched):
        machine.record("share", name, value, site)
    if _is_ids(value):
        machine.record("set", name, value, site)
        if receiver.cls is not None:
            machine.lists.setdefault((receiver.cls.info.name, name), False)


def _registered(machine: Machine, receiver: Instance, name: str, value: Any, site: Site) -> Any:
    """A module as torch's hooks for new children leave it; everything else as it is."""
    if machine.module_hooks and is_module(machine, value):
        from eaglelint.source.calls import call_value

        for hook in list(machine.module_hooks):
            changed = call_value(machine, hook, (receiver, name, value), {}, site)
            value = value if changed is None else changed
    return value


def delete(machine: Machine, target: cst.BaseExpression, frame: Frame) -> None:
    """Unbind a name, an attribute or an item."""
    if isinstance(target, cst.Name):
        frame.env.variables.pop(target.value, None)
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            delete(machine, element.value, frame)
    elif isinstance(target, cst.Attribute):
        receiver = evaluate(machine, target.value, frame)
        if not isinstance(receiver, Instance):
            return
        building = receiver.building[-1:] if frame.initialising is receiver else []
        holder = next((held for held in (*building, receiver.attrs) if target.attr.value in held), None)
        if holder is not None:
            machine.heap.delete(holder, target.attr.value)
    elif isinstance(target, cst.Subscript):
        receiver = evaluate(machine, target.value, frame)
        key = evaluate_index(machine, target, frame)
        _delete_item(machine, receiver, key, Site(frame.slice, target))


def _delete_item(machine: Machine, receiver: Any, key: Any, site: Site) -> None:
    if isinstance(receiver, Instance) and receiver.payload is not None:
        receiver = receiver.payload
    if isinstance(key, Unknown) and isinstance(receiver, list | dict):
        forget(machine, receiver, "an unknown item was deleted")
    elif isinstance(receiver, dict) and _hashable(key):
        if key not in receiver:
            raise Raised("KeyError", repr(key), site)
        machine.heap.delete(receiver, key)
    elif isinstance(receiver, list):
        machine.heap.touch(receiver)
        try:
            del receiver[key]
        except IndexError as error:
            raise Raised("IndexError", str(error), site) from error
        except (TypeError, ValueError):
            receiver[:] = [Unknown("an unknown part of it was deleted")]


def _is_ids(value: Any) -> bool:
    return (
        isinstance(value, list | tuple | set | frozenset)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
    )


def forget(machine: Machine, container: list[Any] | set[Any] | dict[Any, Any], why: str) -> None:
    """Something unknown was taken out: of what is left nothing is certain."""
    if isinstance(container, dict):
        for key in list(container):
            machine.heap.delete(container, key)
        machine.heap.set(container, Unknown(why), Unknown(why))
        return
    machine.heap.touch(container)
    if isinstance(container, list):
        container[:] = [Unknown(why)] * max(len(container) - 1, 0)
    else:
        container.clear()
        container.add(Unknown(why))


def _of_source(value: Any) -> bool:
    return isinstance(value, Instance) and value.cls is not None


def _set_item(machine: Machine, receiver: Any, key: Any, value: Any, site: Site) -> None:
    if isinstance(receiver, Instance) and receiver.payload is not None:
        receiver = receiver.payload
    method = find_method(machine, receiver.cls, "__setitem__") if _of_source(receiver) else None
    if method is not None:
        from eaglelint.source.calls import call_value

        call_value(machine, BoundMethod(method, receiver), (key, value), {}, site)
    elif isinstance(receiver, dict):
        if _hashable(key):
            if machine.keyed is not None:
                machine.keyed(key, value, site)
            machine.heap.set(receiver, key, sited(value, site))
    elif isinstance(receiver, list):
        machine.heap.touch(receiver)
        if isinstance(key, int):
            if not -len(receiver) <= key < len(receiver):
                raise Raised("IndexError", f"index {key} of a list of {len(receiver)}", site)
            receiver[key] = value
            if isinstance(receiver, ModuleItems):
                from eaglelint.source.layers import adopt_layers

                adopt_layers(receiver)
        elif isinstance(key, slice):
            try:
                receiver[key] = list(value)
            except (TypeError, ValueError):
                receiver[:] = [Unknown("a slice of it was assigned")] * len(receiver)
        else:
            receiver[:] = [Unknown("an item of it was assigned")] * len(receiver)
    elif isinstance(receiver, TensorBuffer):
        write_view(machine, view_of(receiver, key), value, site)


def view_of(buffer: TensorBuffer, key: Any) -> TensorView:
    """The stretch of a buffer that an index names: ``buffer[..., start : start + width]``."""
    last = key[-1] if isinstance(key, tuple) and key else key
    if isinstance(last, slice):
        start = last.start
        if start is None or start == 0:
            return TensorView(buffer, 0)
        if isinstance(start, Dim):
            return TensorView(buffer, start.count)
    elif isinstance(key, int):
        return TensorView(buffer, key)
    return TensorView(buffer, None)


def sited(value: Any, site: Site) -> Any:
    """A tensor with the place where it was stored first; everything else as it is."""
    return value.at(site) if isinstance(value, Tensor) and value.site is None else value


def write_view(machine: Machine, view: TensorView, value: Any, site: Site) -> None:
    place: Any = view.place if view.place is not None else ("?", len(view.buffer.writes))
    if isinstance(value, Tensor):
        value = Tensor(value.terms, site)  # a copy
    machine.heap.set(view.buffer.writes, place, value)
    machine.record("capture", "", value, site)


def _hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
