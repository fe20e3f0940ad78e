"""Runs single functions of a training stack's source, on what a user's training config and a target say.

A stack's file names the functions; everything that is stated about the stack comes out of running them here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from eaglelint.recursion import deep_recursion
from eaglelint.source.calls import call_value
from eaglelint.source.construct import function_node
from eaglelint.source.expressions import evaluate
from eaglelint.source.identify import Stream
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.lookup import find_method, global_value
from eaglelint.source.machine import Budget, BudgetExceeded, Event, Outcome, TooLong
from eaglelint.source.operators import whole
from eaglelint.source.slices import Site
from eaglelint.source.tree import SourceModule, SourceTree
from eaglelint.source.values import (
    BoundMethod,
    Cat,
    ClassValue,
    Env,
    Frame,
    Function,
    Input,
    Instance,
    Norm,
    Tensor,
    Unknown,
)
from eaglelint.trainers.outside import Recorder
from eaglelint.trainers.tokens import ROW_INTERCEPTS, row_attribute
from eaglelint.wiring import Evidence, Slot

__all__ = ["Bench", "NotFollowed", "Step", "agreed", "given", "names_in", "order_in", "plain"]


class NotFollowed(Exception):
    """What was asked for could not be told, and why: ``... (file:line)``."""


@dataclass(frozen=True, slots=True)
class Step:
    """A function of the stack that was run, and what it is there for."""

    note: str
    path: str
    line: int

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.path, self.line, self.note)


class Bench:
    """One stack's source, and a machine that runs its functions for a target of N layers.

    Args:
        tree: The stack's source.
        package: The package's directory.
        num_layers: N of the target.
        rows: Whether tensors count along their tokens (tokens.py) instead of as states.
    """

    def __init__(self, tree: SourceTree, package: Path, num_layers: int, *, rows: bool = False) -> None:
        self.tree = tree
        self.package = package
        self.num_layers = num_layers
        self.events: list[Event] = []
        self.machine = Recorder(tree, num_layers=num_layers, on_record=self.events.append, budget=Budget(steps=60_000))
        if rows:
            self.machine.intercepts.update(ROW_INTERCEPTS)
            usual = self.machine.outside
            assert usual is not None

            def outside(receiver: Any, name: str) -> Any:
                found = row_attribute(receiver, name)
                from eaglelint.source.lookup import MISSING

                return usual(receiver, name) if found is MISSING else found

            self.machine.outside = outside

    # --- finding -------------------------------------------------------------------------------------------------

    def module(self, file: str) -> SourceModule:
        """A file of the package, by its path below the package; one of a checkout's ``scripts/`` likewise.

        Raises:
            NotFollowed: This release has no such file, or it does not parse.
        """
        path = self.path(file)
        module = self.tree.module_at(path) if self.tree.is_file(path) else None
        if module is None:
            raise NotFollowed(f"{self.tree.display(path)} is not there, or does not parse")
        return module

    def function(self, file: str, name: str) -> Function:
        """A function of a file, or ``Class.method``.

        Raises:
            NotFollowed: There is none.
        """
        module = self.module(file)
        owner, _, method = name.rpartition(".")
        if owner:
            found = find_method(self.machine, self.cls(file, owner), method)
            if found is not None:
                return found
        elif isinstance(info := module.index.functions.get(name), FunctionInfo):
            return Function(module, info)
        raise NotFollowed(f"{module.display} has no {name}")

    def cls(self, file: str, name: str) -> ClassValue:
        """A class of a file.

        Raises:
            NotFollowed: There is none.
        """
        module = self.module(file)
        info = module.index.classes.get(name)
        if not isinstance(info, ClassInfo):
            raise NotFollowed(f"{module.display} has no class {name}")
        return ClassValue(module, info)

    def method(self, instance: Instance, name: str) -> Function:
        """A method of an object.

        Raises:
            NotFollowed: There is none.
        """
        found = find_method(self.machine, instance.cls, name) if instance.cls is not None else None
        if found is None:
            raise NotFollowed(f"{instance.name} has no {name}")
        return found

    def has(self, file: str) -> bool:
        """Whether the package has that file."""
        return self.tree.is_file(self.path(file))

    def path(self, file: str) -> Path:
        """Where a file of the package stands; ``scripts/`` and the like are beside it, or one directory up."""
        if file.startswith(("examples/", "scripts/", "tools/")):
            places = [parent / file for parent in self.package.parents[:2]]
            return next((place for place in places if self.tree.is_file(place)), places[0])
        return self.package / file

    def line(self, file: str, text: str, note: str) -> Step:
        """The first line of a file that holds a text, as a step."""
        module = self.module(file)
        number = next((number for number, line in enumerate(module.lines, 1) if text in line), 1)
        return Step(note, module.display, number)

    def value(self, file: str, name: str) -> Any:
        """A module's variable."""
        return global_value(self.machine, self.module(file), name)

    # --- running -------------------------------------------------------------------------------------------------

    def instance(self, cls: ClassValue | None, name: str = "", **attrs: Any) -> Instance:
        """An object with these attributes; the others are as its ``__init__`` leaves them, or unknown."""
        made = Instance(cls, attrs=dict(attrs), name=name or (cls.info.name if cls is not None else ""))
        return self.machine.new_instance(made)

    def section(self, name: str, data: dict[str, Any]) -> Instance:
        """A parsed config: these keys, and no others."""
        attrs = {
            key: self.section(f"{name}.{key}", value) if isinstance(value, dict) else value
            for key, value in data.items()
        }
        return self.machine.new_instance(Instance(None, attrs=attrs, name=name, closed=True))

    def call(self, function: Function, *args: Any, receiver: Any = None, **kwargs: Any) -> Any:
        """The result of a call; where several paths are possible, that of the usual one if they agree.

        Raises:
            NotFollowed: It raises, takes too long, or depends on what is not known.
        """
        callee = BoundMethod(function, receiver) if receiver is not None else function
        return self.run(lambda: call_value(self.machine, callee, args, kwargs, None), function.info.name)

    def run(self, work: Callable[[], Any], what: str) -> Any:
        """Run a piece of work on every path; all must agree.

        Raises:
            NotFollowed: They do not, or none ends.
        """
        returned = self.outcomes(work, what)
        first = returned[0]
        if len(returned) > 1 and any(plain(other.value) != plain(first.value) for other in returned[1:]):
            decisions = [
                decision for outcome in returned for decision in outcome.decisions if decision.site is not None
            ]
            where = _at(decisions[0].site) if decisions else ""
            raise NotFollowed(f"{what} depends on {decisions[0].text if decisions else 'a condition'}{where}")
        return first.value

    def every(self, work: Callable[[], Any], what: str) -> list[Any]:
        """What a piece of work gives on each path that ends.

        Raises:
            NotFollowed: None does.
        """
        return [outcome.value for outcome in self.outcomes(work, what)]

    def outcomes(self, work: Callable[[], Any], what: str) -> list[Outcome]:
        """The paths through a piece of work that end.

        Raises:
            NotFollowed: None does.
        """
        machine = self.machine
        machine.begin()
        machine.layer = -1
        try:
            with deep_recursion():
                outcomes = machine.explore(work, None)
        except BudgetExceeded as error:
            raise NotFollowed(f"the interpretation of {what} stopped: {error.what}{_at(error.site)}") from error
        except (RecursionError, TooLong) as error:
            raise NotFollowed(f"the interpretation of {what} stopped: it is nested too deeply") from error
        returned = [outcome for outcome in outcomes if outcome.raised is None]
        if not returned:
            raised = outcomes[0].raised
            assert raised is not None
            raise NotFollowed(f"{what} would stop with {raised.kind}{_at(raised.site)}: {raised.message}")
        return returned

    def handed(self, function: Function, callee: str, receiver: Any, **variables: Any) -> list[Any]:
        """What a function hands to ``self.<callee>``, wherever it calls that, with these local variables known.

        Only the argument's own expression is run, so that what comes before it need not be followed.
        """
        piece, node = function_node(function)
        frame = Frame(piece, function.module, Env(dict(variables)), function.info.name, function.owner, receiver)
        finder = _Calls(callee)
        node.visit(finder)
        frame.env.variables.setdefault("self", receiver)
        for name in finder.indices:  # which tokens are taken does not matter here
            frame.env.variables.setdefault(name, slice(None))

        def evaluated() -> list[Any]:
            return [evaluate(self.machine, call.args[0].value, frame) for call in finder.found if call.args]

        found = self.run(evaluated, function.info.name)
        return list(found) if isinstance(found, list) else []

    def assigned(self, function: Function, variable: str, receiver: Any = None, **variables: Any) -> Any:
        """What a function assigns to a local variable last, with these variables known.

        Of what comes before only the variables that it is computed from are computed, each as it was assigned last.

        Raises:
            NotFollowed: There is no such assignment.
        """
        piece, node = function_node(function)
        finder = _Assigned()
        node.visit(finder)
        if variable not in finder.found:
            raise NotFollowed(f"{function.module.display}:{function.info.line}: {variable} is not set")
        env = Env({"self": receiver, **variables})
        frame = Frame(piece, function.module, env, function.info.name, function.owner, receiver)

        def compute(name: str) -> Any:
            value = finder.found[name]
            env.variables[name] = Unknown(f"{name}, which is computed from itself")
            for used in names_of(value):
                if used in finder.found and used not in env.variables:
                    compute(used)
            env.variables[name] = evaluate(self.machine, value, frame)
            return env.variables[name]

        return self.run(lambda: compute(variable), function.info.name)

    # --- reading results -----------------------------------------------------------------------------------------

    def slot(self, value: Any) -> Slot:
        """Which hidden state of the target a tensor is."""
        value = whole(value)
        if not isinstance(value, Tensor):
            return Slot("unknown")
        return Stream(self.machine, self.num_layers).slot(value)[0]

    def ids(self, value: Any, function: Function) -> tuple[int, ...]:
        """Layer ids that a function chose.

        Raises:
            NotFollowed: They are no list of integers that is known.
        """
        if isinstance(value, list | tuple) and value and all(type(item) is int for item in value):
            return tuple(value)
        raise NotFollowed(f"the ids that {function.module.display}:{function.info.line} chooses are not known")

    def parts(self, value: Any) -> tuple[Any, ...]:
        """The tensors that a concatenation along the features joins, in order; else the one tensor."""
        value = whole(value)
        term = value.single() if isinstance(value, Tensor) else None
        return tuple(term.parts) if isinstance(term, Cat) else (value,)


class _Calls(cst.CSTVisitor):
    """The calls of one method or module of ``self``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[cst.Call] = []
        self.indices: list[str] = []
        self._depth = self._index = 0

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == self.name:
            self.found.append(node)
            self._depth += 1

    def leave_Call(self, original_node: cst.Call) -> None:
        if original_node in self.found:
            self._depth -= 1

    def visit_SubscriptElement(self, node: cst.SubscriptElement) -> None:
        self._index += 1

    def leave_SubscriptElement(self, original_node: cst.SubscriptElement) -> None:
        self._index -= 1

    def visit_Name(self, node: cst.Name) -> None:
        if self._depth and self._index:
            self.indices.append(node.value)


class _Assigned(cst.CSTVisitor):
    """The value that is assigned to each variable last, and the names in it."""

    def __init__(self) -> None:
        self.found: dict[str, cst.BaseExpression] = {}

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Name):
                self.found[target.target.value] = node.value


def names_of(node: cst.CSTNode) -> tuple[str, ...]:
    """The names that stand in an expression."""
    finder = _Names()
    node.visit(finder)
    return tuple(dict.fromkeys(finder.found))


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node.value)


def given(name: str) -> Tensor:
    """A tensor that a function is handed, to be recognised in what it makes of it."""
    return Tensor.of(Input(name))


def names_in(value: Any) -> tuple[str, ...] | None:
    """The given tensors that a value joins, a norm written around its name; None where it is anything else."""
    value = whole(value)
    if not isinstance(value, Tensor):
        return None
    term = value.single()
    if isinstance(term, Input):
        return (term.name,)
    if isinstance(term, Norm):
        inner = names_in(term.of)
        return None if inner is None else tuple(f"norm({name})" for name in inner)
    if isinstance(term, Cat):
        parts = [names_in(part) for part in term.parts]
        return None if None in parts else tuple(name for part in parts if part is not None for name in part)
    return None


def order_in(value: Any, function: Function) -> tuple[tuple[int, ...], frozenset[int]]:
    """The given states, ``state 0`` and so on, that a function joins, in order, and those of them that are normed.

    Raises:
        NotFollowed: It joins something else.
    """
    found = names_in(value)
    order = [re.fullmatch(r"(norm\()?state (\d+)\)?", name) for name in found or ()]
    if not order or None in order:
        raise NotFollowed(f"{function.module.display}:{function.info.line}: what feeds fc is not known")
    known = [match for match in order if match is not None]
    return tuple(int(match.group(2)) for match in known), frozenset(int(m.group(2)) for m in known if m.group(1))


def agreed(dicts: list[dict[Any, Any]]) -> dict[Any, Any]:
    """What several dicts have in common: the keys that all have, None where their values differ."""
    first = dicts[0]
    common: dict[Any, Any] = {}
    for key in first:
        values = [other[key] for other in dicts if key in other]
        if len(values) < len(dicts):
            continue
        if all(isinstance(value, dict) for value in values):
            common[key] = agreed(values)
        else:
            common[key] = first[key] if all(plain(value) == plain(first[key]) for value in values) else None
    return common


def plain(value: Any) -> Any:
    """A value without the objects that no two runs share: lists, dicts and objects as their contents."""
    value = whole(value)
    if isinstance(value, Instance):
        return (value.name, plain(value.payload), tuple((key, plain(item)) for key, item in value.attrs.items()))
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, plain(item)) for key, item in value.items())
    return value


def _at(site: Site | None) -> str:
    return f" at {site}" if site is not None else ""
