"""Running a script's functions one by one, and what each path through them captured, saved and returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eaglelint.recursion import deep_recursion
from eaglelint.source.construct import bind_arguments, function_node
from eaglelint.source.heap import CacheList
from eaglelint.source.identify import Stream
from eaglelint.source.machine import Budget, BudgetExceeded, Decision, Event, Raised
from eaglelint.source.slices import Site
from eaglelint.source.statements import run_block, run_function_body
from eaglelint.source.tree import SourceTree
from eaglelint.source.values import ClassValue, Closure, Env, Frame, Function, Input, Instance, Norm, Tensor, Unknown
from eaglelint.trainers.files import Entry
from eaglelint.trainers.outside import Recorder, top_statements
from eaglelint.trainers.shapes import Joined, Other, Shape, State, freeze, refine, states_in
from eaglelint.wiring import Slot

__all__ = ["Capture", "Path", "Run", "Save", "Use", "run_entry", "start_entry"]

_UNKNOWN = Slot("unknown")


@dataclass(frozen=True, slots=True)
class Capture:
    """A state put in a list; ``layer`` is the one that ran last, ``layer_site`` the call of it."""

    state: State
    site: Site = field(compare=False)
    layer_site: Site | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Save:
    """States that were handed out: to a file, or by ``yield``."""

    shape: Shape
    site: Site = field(compare=False)


@dataclass(frozen=True, slots=True)
class Use:
    """A state that is made into logits: what it was before ``norms`` norms were applied.

    ``given`` is its place among the states that the run was given, ``norm`` the class of the last norm. ``draft``
    says that it is no state of the target, ``computed`` that the run itself computed it.
    """

    state: State
    norms: int
    site: Site
    given: int | None = None
    norm: tuple[str, ClassValue | None, Site] | None = field(default=None, compare=False)
    draft: bool = False
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """One path through an entry."""

    saves: tuple[Save, ...]
    returned: Shape
    joins: tuple[Save, ...]
    uses: tuple[Use, ...] = ()
    captures: tuple[Capture, ...] = field(default=(), compare=False)
    sets: tuple[Event, ...] = field(default=(), compare=False)
    decisions: tuple[Decision, ...] = field(default=(), compare=False)

    @property
    def condition(self) -> str:
        return (
            " and ".join(dict.fromkeys(decision.text for decision in self.decisions if decision.choice)) or "otherwise"
        )

    @property
    def all_conditions(self) -> str:
        """Everything that was decided on the path."""
        return " and ".join(dict.fromkeys(decision.text for decision in self.decisions)) or "always"


@dataclass(slots=True)
class Run:
    """All paths through one entry; ``stopped`` says why there are none."""

    entry: Entry
    paths: tuple[Path, ...] = ()
    stopped: str | None = None
    stopped_site: Site | None = None
    captured: bool = False
    followed: set[tuple[str, int]] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    patched: dict[str, list[tuple[Any, Site | None]]] = field(default_factory=dict)
    assumptions: set[str] = field(default_factory=set)
    read: bool = False
    doubts: list[str] = field(default_factory=list)
    ids: dict[str, tuple[Any, str, int]] = field(default_factory=dict)


def run_entry(
    tree: SourceTree,
    entry: Entry,
    num_layers: int,
    *,
    patches: dict[str, Any] | None = None,
    load: Callable[[Site | None], Any] | None = None,
    arguments: dict[str, Any] | None = None,
    saved: list[State] | None = None,
    budget: Budget | None = None,
) -> Run:
    """Run one entry with unknown arguments; never raises for what the script does.

    Args:
        tree: The scripts.
        entry: What to run.
        num_layers: N of the target.
        patches: Attributes that other entries set on the model.
        load: What the entry's loads give back.
        arguments: Parameters that are known, by name.
        saved: The states behind the placeholders in loaded values.
        budget: Bounds of the run.
    """
    trail = _Trail(num_layers, saved)
    run = Run(entry)
    machine = Recorder(
        tree,
        num_layers=num_layers,
        on_record=trail.note,
        patches=patches,
        load=load,
        budget=budget or Budget(steps=40_000),
    )
    trail.machine = machine

    def once() -> Path:
        machine.layer = -1
        value: Any = None
        with suppress(Raised):  # what was saved before counts
            value = start_entry(machine, entry, arguments or {})
        returned = freeze(value, trail.resolve)
        return Path(
            tuple(_refined_save(save, trail) for save in trail.saves if any(True for _ in states_in(save.shape))),
            returned if any(True for _ in states_in(returned)) else Other(),
            tuple(_refined_save(save, trail) for save in trail.joins),
            tuple(trail.uses()),
            tuple(trail.finished()),
            tuple(event for event in machine.events if event.kind in ("set", "argument")),
        )

    try:
        with deep_recursion():
            outcomes = machine.explore(once, None)
        run.paths = tuple(_decided(outcome.value, outcome.decisions) for outcome in outcomes if outcome.raised is None)
    except BudgetExceeded as error:
        run.stopped, run.stopped_site = error.what, error.site
    except RecursionError:
        run.stopped = "nested too deeply"
    run.captured = any(c.state.slot.known for path in run.paths for c in path.captures) or (
        bool(machine.passes)
        and (_stopped_at_a_list(run) or any(len(list(states_in(s.shape))) > 1 for p in run.paths for s in p.saves))
    )
    run.followed = {(str(module.path), line) for module, line in machine.followed}
    run.asked = machine.missed
    run.assumptions = machine.used_assumptions
    run.patched = trail.patched
    run.ids = _id_constants(machine, tree)
    return run


def _stopped_at_a_list(run: Run) -> bool:
    """Whether a run ended in a function that fills a list: what it would have held is not known."""
    if run.stopped is None:
        return False
    code = run.stopped_site.slice.text if run.stopped_site is not None else ".append("
    return any(mark in code for mark in (".append(", "+= (", "+= ["))


def _refined_save(save: Save, trail: _Trail) -> Save:
    return Save(refine(save.shape, trail.resolve), save.site)


def _decided(path: Path, decisions: tuple[Decision, ...]) -> Path:
    return replace(path, decisions=decisions)


class _Trail:
    """What a run leaves behind, frozen at the moment it happens: lists change afterwards."""

    def __init__(self, num_layers: int, saved: list[State] | None) -> None:
        self.num_layers = num_layers
        self.saved = saved
        self.machine: Recorder | None = None
        self.saves: list[Save] = CacheList()
        self.joins: list[Save] = CacheList()
        self.captures: list[Capture] = CacheList()
        self.heads: list[Event] = CacheList()
        self.norms: list[Event] = CacheList()
        self.patched: dict[str, list[tuple[Any, Site | None]]] = {}

    def note(self, event: Event) -> None:
        machine = self.machine
        assert machine is not None
        if event.kind in ("save", "yield"):
            self._add(self.saves, Save(freeze(event.value, self.resolve), event.site))
        elif event.kind == "cat":
            shape = freeze(event.value, self.resolve)
            if isinstance(shape, Joined):
                self._add(self.joins, Save(shape, event.site))
        elif event.kind == "capture":
            state = State(_UNKNOWN, None, event.site, event.value)
            self._add(self.captures, Capture(state, event.site, machine.layer_site))
        elif event.kind in ("head", "norm"):
            self._add(self.heads if event.kind == "head" else self.norms, event)
        elif event.kind == "set":
            self.patched.setdefault(event.name, []).append((_copied(event.value), event.site))

    def _add(self, notes: list[Any], item: Any) -> None:
        assert self.machine is not None
        self.machine.heap.touch(notes)
        notes.append(item)

    def finished(self) -> list[Capture]:
        """The captures, resolved when all layers have run."""
        found = []
        for capture in self.captures:
            state = refine(capture.state, self.resolve)
            assert isinstance(state, State)
            found.append(Capture(state, capture.site, capture.layer_site))
        return found

    def uses(self) -> Iterator[Use]:
        """What was made into logits, resolved when all layers have run."""
        machine = self.machine
        assert machine is not None
        for event in self.heads:
            tensor, norms, norm = event.value, 0, None
            from_target = tensor in machine.given_out
            while isinstance(term := tensor.single(), Norm):
                norm = norm or next(((n.name, n.value[1], n.site) for n in self.norms if n.value[0] == term.of), None)
                tensor, norms = term.of, norms + 1
                from_target = from_target or tensor in machine.given_out
            given = _given(tensor) if self.saved is not None else None
            draft = given is None and not from_target
            state = State(_UNKNOWN) if draft else self.resolve(tensor)
            computed = draft and not any(isinstance(term, Input) for term in tensor.terms)
            yield Use(state, norms, event.site, given, norm, draft, computed)

    def resolve(self, tensor: Tensor) -> State:
        """What a tensor is: a loaded state is what was saved; another one is compared with the stream."""
        if self.saved is not None:
            return _loaded(tensor, self.saved)
        machine = self.machine
        assert machine is not None
        slot, reason = Stream(machine, self.num_layers).slot(tensor)
        if slot.form == "partial":
            passed = [t for p in machine.passes.values() for t in (*p.entry, *p.output)]
            if not tensor.terms <= {term for other in passed for term in other.terms}:
                slot, reason = _UNKNOWN, "it is computed from the stream but no part of it"
        return State(slot, reason, tensor.site, tensor)


def _loaded(tensor: Tensor, saved: list[State]) -> State:
    term, given = tensor.single(), _given(tensor)
    if given is not None:
        return saved[given]
    if isinstance(term, Norm):
        inner = _loaded(term.of, saved)
        if inner.slot.form == "stream":
            return replace(inner, slot=Slot("norm", inner.slot.boundary))
    return State(_UNKNOWN, "it is no longer a state as it was saved", tensor.site)


def _given(tensor: Tensor) -> int | None:
    """Which of the states that a run was given this is."""
    term = tensor.single()
    if isinstance(term, Input) and term.name.startswith("saved "):
        return int(term.name.removeprefix("saved "))
    return None


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | set | dict) else value


# --- starting ------------------------------------------------------------------------------------------------------


def start_entry(machine: Recorder, entry: Entry, arguments: dict[str, Any], *, more: Any = None) -> Any:
    """Run an entry with these arguments; its result. ``more`` is what ``**kwargs`` of it holds, if not nothing."""
    if entry.function is None:
        return _run_module(machine, entry)
    owner = ClassValue(entry.module, entry.owner) if entry.owner is not None else None
    function = Function(entry.module, entry.function, owner)
    receiver: Any = None
    if owner is not None and "staticmethod" not in entry.function.decorators:
        receiver = owner
        if "classmethod" not in entry.function.decorators:
            text = entry.module.text(owner.info.line, owner.info.end_line)
            given = {name: value for (_, name), value in machine.patches.items() if f".{name}" in text}
            receiver = machine.new_instance(Instance(owner, attrs=_ids_only(given), name=owner.info.name))
    piece, node = function_node(function)
    frame = Frame(piece, entry.module, Env({}), f"{entry.module.name}.{entry.name}", owner, receiver)
    args = () if receiver is None else (receiver,)
    if any(parameter.name.value == "input_ids" for parameter in (*node.params.params, *node.params.kwonly_params)):
        # A Hugging Face model's default is None, and then it asks for embeddings instead.
        arguments = {"input_ids": Unknown("the input ids", present=True), **arguments}
    frame.env.variables = bind_arguments(machine, node.params, args, arguments, frame)
    if more is not None and node.params.star_kwarg is not None:
        frame.env.variables[node.params.star_kwarg.name.value] = more
    result = run_function_body(machine, node, frame)
    return _run_patches(machine, result)


def _run_patches(machine: Recorder, result: Any) -> Any:
    """A nested function that was put in a model's place is run too: nothing else among the files may call it."""
    from eaglelint.source.calls import call_value

    for _, value in list(machine.patches.items()):
        if isinstance(value, Closure):
            returned = call_value(machine, value, (), {}, None)
            result = returned if result is None or not any(states_in(freeze(result, _any))) else result
    return result


def _ids_only(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes that hold ids: what is set on a model from outside replaces what its __init__ left."""
    return {name: value for name, value in attributes.items() if isinstance(value, list | tuple | set | Unknown)}


def _any(tensor: Tensor) -> State:
    return State(_UNKNOWN)


def _run_module(machine: Recorder, entry: Entry) -> Any:
    """A script's own statements, in order; the functions they call see the names bound so far."""
    module = entry.module
    env = Env({"__name__": "__main__"})
    for line, end_line in top_statements(module):
        try:
            piece = module.slice(line, end_line)
        except SyntaxError:
            continue
        frame = Frame(piece, module, env, module.name)
        run_block(machine, piece.body, frame)
        env = frame.env
        machine.globals.update({(module.name, name): value for name, value in env.variables.items()})
    return None


def _id_constants(machine: Recorder, tree: SourceTree) -> dict[str, tuple[Any, str, int]]:
    """The module variables that hold lists of integers and that the run read: value, file and line by name."""
    found = {}
    for (module_name, name), value in machine.globals.items():
        module = tree.module(module_name)
        if module is None or name not in module.index.assignments:
            continue
        if isinstance(value, list | tuple | set | frozenset) and value and all(isinstance(i, int) for i in value):
            found[name] = (value, module.display, module.index.assignments[name][0])
    return found
