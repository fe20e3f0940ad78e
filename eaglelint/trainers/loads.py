"""The other side of a dump: the code that loads what was saved, run on exactly that."""

from __future__ import annotations

from typing import Any

import libcst as cst

from eaglelint.source.machine import Budget
from eaglelint.source.slices import Site
from eaglelint.source.tree import SourceTree
from eaglelint.source.values import External, Input, Instance, Partial, Tensor, Unknown
from eaglelint.trainers.files import Entry, parameters
from eaglelint.trainers.runs import Run, Save, run_entry
from eaglelint.trainers.shapes import Keyed, Many, Shape, State, states_in, thaw

__all__ = ["ONE", "SEVERAL", "loads_something", "run_loader", "run_step"]

# How a function calls the example, or the examples, that it is handed where it does not load them by itself.
ONE = frozenset(["batch", "data", "example", "feature", "item", "raw", "raw_data", "record", "row", "sample"])
SEVERAL = frozenset(["batch", "examples", "features", "items", "records", "samples"])


# How a draft's own code calls what it computes with.
_OF_THE_DRAFT = frozenset(["embeds", "hidden", "hidden_states", "input_embeds", "inputs_embeds", "x"])


def loads_something(entry: Entry) -> bool:
    """A quick test on the text: may this code load, or be handed, what was saved?"""
    if entry.function is None:
        return "load" in "".join(entry.module.lines)
    text = entry.module.text(entry.function.line, entry.function.end_line)
    head = text.split(":\n", 1)[0]
    return "load" in text or any(name in head for name in ONE | SEVERAL) or "self." in text


def run_loader(
    tree: SourceTree, entry: Entry, saves: tuple[Save, ...], num_layers: int, budget: Budget | None
) -> Run | None:
    """Run code on what was saved; None where it takes nothing of it.

    Without a name that tells an example from a list of them, both are tried.
    """
    names = [parameter.name.value for parameter in parameters(entry)]
    one = [name for name in names if name in ONE]
    several = [name for name in names if name in SEVERAL]
    best: Run | None = None
    for listed in [False, True] if set(one) & set(several) else [bool(several and not one)]:
        run = _run(tree, entry, saves, num_layers, budget, several if listed else one, listed=listed)
        if best is None or (run is not None and _richness(run) > _richness(best)):
            best = run
    return best


def run_step(tree: SourceTree, entry: Entry, named: dict[str, Shape], num_layers: int, budget: Budget | None) -> Run:
    """Run code on states by the names under which a dataset hands them out, as parameters or in a batch.

    Which of them a use speaks of (``Use.given``) is its place in the order of the names.
    """
    states: list[State] = []
    known = {name: thaw(shape, states) for name, shape in named.items()}
    item = Partial(External("batch.item"), (known,), {})
    batch = Instance(None, name="a batch", attrs={"__getitem__": item, "get": item, "pop": item, **known})
    arguments = {}
    for parameter in parameters(entry):
        name = parameter.name.value
        if name in known:
            arguments[name] = known[name]
        elif name in ONE | SEVERAL | {"inputs"}:
            arguments[name] = batch
        elif name in _OF_THE_DRAFT:
            arguments[name] = Tensor.of(Input(f"argument {name}"))
    return run_entry(tree, entry, num_layers, arguments=arguments, saved=states, budget=budget or Budget(steps=20_000))


def _run(
    tree: SourceTree,
    entry: Entry,
    saves: tuple[Save, ...],
    num_layers: int,
    budget: Budget | None,
    parameters: list[str],
    *,
    listed: bool,
) -> Run | None:
    states: list[State] = []
    handed = False

    def read(site: Site | None) -> Any:
        nonlocal handed
        save = _matching(saves, site)
        if save is None:
            return Unknown("it is not known which of several saved files this loads")
        handed = True
        return thaw(save.shape, states)

    arguments: dict[str, Any] = {}
    if parameters and len(saves) == 1:
        handed = True
        example = thaw(_one_example(saves[0].shape), states)
        arguments = {name: [example] if listed else example for name in parameters}
    run = run_entry(
        tree, entry, num_layers, load=read, arguments=arguments, saved=states, budget=budget or Budget(steps=20_000)
    )
    run.read = handed and any(_uses(path) for path in run.paths)
    return run if handed else None


def _uses(path: Any) -> bool:
    shapes = [path.returned, *(save.shape for save in (*path.saves, *path.joins))]
    return any(True for shape in shapes for _ in states_in(shape))


def _richness(run: Run) -> int:
    shapes = [shape for path in run.paths for shape in (path.returned, *(join.shape for join in path.joins))]
    return sum(state.slot.known for shape in shapes for state in states_in(shape))


def _one_example(shape: Shape) -> Shape:
    """The example in a file that holds a list of them."""
    if isinstance(shape, Many) and len(shape.items) == 1 and isinstance(shape.items[0], Keyed):
        return shape.items[0]
    return shape


# --- several files -------------------------------------------------------------------------------------------------


def _matching(saves: tuple[Save, ...], site: Site | None) -> Save | None:
    """The save whose file name has the same fixed parts as the load's."""
    if len(saves) == 1:
        return saves[0]
    wanted = _fixed_text(site)
    found = [save for save in saves if wanted and _fixed_text(save.site) == wanted]
    return found[0] if len(found) == 1 else None


def _fixed_text(site: Site | None) -> str:
    """The literal parts of the path in a call that saves or loads."""
    if site is None or not isinstance(site.node, cst.Call):
        return ""
    call = site.node
    first = site.slice.code(call.func).startswith(("np.", "numpy."))
    saving = "save" in site.slice.code(call.func) or "dump" in site.slice.code(call.func)
    paths = call.args[1:] if saving and not first else call.args[:1]
    reader = _Literals()
    for argument in paths:
        argument.value.visit(reader)
    return "".join(reader.found)


class _Literals(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        self.found.append(str(node.evaluated_value))

    def visit_FormattedStringText(self, node: cst.FormattedStringText) -> None:
        self.found.append(node.value)
