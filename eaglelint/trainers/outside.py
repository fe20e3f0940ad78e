"""What a script gets from outside its sources: the target model, hooks on its layers, command-line defaults, files.

Nothing here says which layers are captured; that is read from the script. Here stands what a call means whose code is
not among the files: that ``model(...)`` runs the patched forward pass, that a hook on layer i sees h[i+1].
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import libcst as cst

from eaglelint.source.assumptions import ASSUMPTIONS, Assumption
from eaglelint.source.calls import call_value, construct, model_output, tensors_in
from eaglelint.source.externals import call_external
from eaglelint.source.items import get_item
from eaglelint.source.layers import stream_states
from eaglelint.source.lookup import MISSING, opaque_layers
from eaglelint.source.machine import Budget, Event, LayerPass, Machine
from eaglelint.source.operators import normed, whole
from eaglelint.source.slices import Site
from eaglelint.source.statements import run_block
from eaglelint.source.tree import SourceModule, SourceTree
from eaglelint.source.values import (
    BoundMethod,
    ClassValue,
    Closure,
    Env,
    External,
    Frame,
    Function,
    Instance,
    LayerOutput,
    Partial,
    Tensor,
    Unknown,
)
from eaglelint.trainers.stacks import STACK_INTERCEPTS, stack_attribute

__all__ = ["DEFAULTS", "HOOKS", "Recorder"]

DEFAULTS = "the defaults of the command line"
HOOKS = "decoder layers return the whole residual stream first, as in Hugging Face models"

_LAYER_LISTS = ("blocks", "h", "layers")
_DEPTHS = ("end_layer", "n_layer", "num_hidden_layers", "num_layers")
_MODEL = re.compile(r"(?:.*_)?(?:backbone|base|llm|lm|model|target|teacher|transformer|verifier)", re.IGNORECASE)
_DRAFT = re.compile(r"draft|eagle|student", re.IGNORECASE)
_HEAD = re.compile(r"(?:.*_)?(?:lm_head|target_head|unembed(?:ding)?)", re.IGNORECASE)
_HEAD_WEIGHT = re.compile(r"head|unembed", re.IGNORECASE)
_NORM = re.compile(r"norm", re.IGNORECASE)
_LOADS = ("joblib.load", "numpy.load", "pickle.load", "safetensors.numpy.load_file", "safetensors.torch.load_file")

_PLAIN = "a plain forward pass: no attentions returned, no cache, no gradient checkpointing"
_ASSUMPTIONS = (
    *(assumption for assumption in ASSUMPTIONS if assumption.name != "inference"),
    Assumption("plain", _PLAIN, re.compile("gradient_checkpointing|output_attentions|use_cache"), False),
    Assumption("plain", _PLAIN, re.compile("return_dict|use_return_dict"), True),
)

_Args = tuple[Any, ...]


class Recorder(Machine):
    """A machine for scripts: stands in for what lies outside, and keeps what was saved as it was when it was saved.

    Args:
        tree: The scripts.
        num_layers: N of the target.
        on_record: Called with each event when it happens.
        patches: Attributes that other code sets on the model, by name.
        load: What a load gives back, for runs of the dataset.
        budget: Bounds of the run.
    """

    def __init__(
        self,
        tree: SourceTree,
        *,
        num_layers: int,
        on_record: Callable[[Event], None],
        patches: dict[str, Any] | None = None,
        load: Callable[[Site | None], Any] | None = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(tree, assumptions=_ASSUMPTIONS, budget=budget, num_layers=num_layers)
        self.script = True
        self.outside = self._attribute
        self.outside_call = self._call
        self.module_variable = self._variable
        self.on_record = on_record
        self.missed: set[str] = set()
        self.hooks: list[tuple[Any, str, Any]] = []
        self.given_out: list[Tensor] = []  # what calls of the target returned, on any path
        self.arguments: dict[str, Any] = {}
        self.patches.update({("", name): value for name, value in (patches or {}).items()})
        self.intercepts.update(STACK_INTERCEPTS)
        self.intercepts.update(
            {
                "hook.register": _register_hook,
                "outside.construct": lambda machine, args, kwargs, site: construct(machine, args[0], (), {}),
                "torch.cat": _cat,
                "torch.nn.ModuleList": _module_list,
                "types.MethodType": lambda machine, args, kwargs, site: _bound(args),
                "batch.item": lambda machine, args, kwargs, site: _batch_item(args),
                "torch.nn.functional.linear": _linear,
                "torch.matmul": _matmul,
            }
        )
        if load is not None:
            read = load
            for name in ("torch.load", *_LOADS):
                self.intercepts[name] = lambda machine, args, kwargs, site: read(site)
            self.intercepts["safetensors.safe_open"] = lambda machine, args, kwargs, site: _opened(read(site))
            self.intercepts["file.item"] = lambda machine, args, kwargs, site: _file_item(machine, args, site)

    def record(self, kind: str, name: str, value: Any, site: Site) -> None:
        super().record(kind, name, value, site)
        self.on_record(self.events[-1])

    # --- module variables ---

    def _variable(self, module: SourceModule, name: str) -> Any:
        """A script's variable: all statements of the module that may set or change it, in order."""
        text = "".join(module.lines)
        if re.search(rf"^\s+global\b.*\b{re.escape(name)}\b", text, re.M):
            return Unknown(f"{name} is set at run time", present=True)
        spans = [span for span in top_statements(module) if _may_set(module.text(*span), name)]

        def run() -> Any:
            env = Env({})
            for span in spans:
                piece = module.slice(*span)
                frame = Frame(piece, module, env, module.name)
                run_block(self, piece.body, frame)
                env = frame.env
            return env.variables.get(name, Unknown(f"{name} is not set where it was expected"))

        mark = self.heap.mark()
        try:
            outcomes = self.explore(run, None)
        except SyntaxError:
            return Unknown(f"{name} is set by code that does not parse")
        if len(outcomes) != 1 or outcomes[0].raised is not None:
            return Unknown(f"{name} depends on a condition")
        self.keep((outcomes[0].value,), mark, (module.name, name))
        return outcomes[0].value

    # --- attributes ---

    def _attribute(self, receiver: Any, name: str) -> Any:
        found = stack_attribute(receiver, name)
        if found is not MISSING:
            return found
        if name in _LAYER_LISTS and getattr(receiver, "layer", None) is None:
            return opaque_layers(self)
        patched = self.patches.get(("", name), MISSING)
        if patched is not MISSING:
            return patched
        if isinstance(receiver, ClassValue):
            if name in ("from_pretrained", "from_config"):
                return Partial(External("outside.construct"), (receiver,), {})
            return Unknown(f"{receiver.info.name}.{name}")
        if name in ("register_forward_hook", "register_forward_pre_hook"):
            return Partial(External("hook.register"), (receiver, name), {})
        if name in _DEPTHS:
            return self.num_layers
        if name == "start_layer":
            return 0
        self.missed.add(name)
        return MISSING

    # --- calls ---

    def _call(self, callee: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
        parses = _OF_PARSERS.get(name.rsplit(".", 1)[-1])
        if parses is not None:  # of a parser: a script's own function of that name is followed
            return parses(self, args, kwargs, site)
        self._note_use(callee, name.rsplit(".", 1)[-1], args, kwargs, site)
        found = self._call_of_target(callee, name, args, kwargs, site)
        if found is not MISSING:
            self.given_out += tensors_in(found.attrs if isinstance(found, Instance) else found)
        return found

    def _note_use(self, callee: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> None:
        """Note what is made into logits, and the class of a norm that is applied."""
        made = callee.name if isinstance(callee, Instance) else ""
        if isinstance(callee, Instance) and callee.cls is not None:
            made = callee.cls.info.name
        is_head = _HEAD.fullmatch(name) is not None
        is_norm = bool(made) and (_NORM.search(name) or _NORM.search(made)) is not None
        if site is None or not (is_head or is_norm):
            return
        tensors = tensors_in((args, kwargs))
        if tensors and is_head:
            self.record("head", name, tensors[0], site)
        elif tensors:
            self.record("norm", made, (tensors[0], callee.cls), site)

    def _call_of_target(self, callee: Any, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
        if isinstance(callee, Instance) and (callee.cls is not None or callee.layer is not None):
            return MISSING
        if not _MODEL.fullmatch(name.rsplit(".", 1)[-1]) or _DRAFT.search(name):
            return MISSING
        self.missed |= {"forward", "output_hidden_states"}  # what other code sets on the model counts here
        asked = kwargs.get("output_hidden_states", self.patches.get(("", "output_hidden_states")))
        if self.hooks:
            return self._run_hooks(site, asked)
        forward = self.patches.get(("", "forward"))
        if isinstance(forward, Function | Closure):
            return call_value(self, forward, (Unknown("the model"), *args), kwargs, site)
        if isinstance(forward, BoundMethod | Partial):
            return call_value(self, forward, args, kwargs, site)
        return model_output(self) if asked is True else MISSING

    def _run_hooks(self, site: Site | None, asked: Any) -> Any:
        """A forward pass in which every layer calls its hooks, the norm last."""
        self.used_assumptions.add(HOOKS)
        states = stream_states(self)
        count = self.num_layers or 0
        final = normed_after(self, states)
        for index in range(count + 1):
            self.layer = min(index, count - 1)
            for module, kind, hook in list(self.hooks):
                at = count if module == "norm" else module
                if at != index:
                    continue
                before = states[index]
                after = final if module == "norm" else states[index + 1]
                inputs = (LayerOutput(before, None, before).whole,)
                output: Any = after if module == "norm" else LayerOutput(after, None, after)
                given = (Unknown("the module"), inputs) if kind.endswith("pre_hook") else (Unknown(), inputs, output)
                call_value(self, hook, given, {}, site)
        if asked is True:
            return model_output(self)
        return Instance(None, name="model output", attrs={"last_hidden_state": final})


def top_statements(module: SourceModule) -> list[tuple[int, int]]:
    """The lines of a module's own statements, in order."""
    return module.index.statements


def _may_set(text: str, name: str) -> bool:
    """A quick test: does a statement assign the name, or call a method of it?"""
    return (
        re.search(rf"(?:^|[\s,(*]){re.escape(name)}\b\s*(?:[-+*/|&]?=(?!=)|[,:.\[)])|\bas {re.escape(name)}\b", text)
        is not None
    )


def normed_after(machine: Machine, states: tuple[Tensor, ...]) -> Tensor:
    """The model's last state, normed."""
    machine.layer = (machine.num_layers or 0) - 1
    machine.heap.set(machine.passes, machine.layer, LayerPass(states[-2:-1], states[-1:]))
    return normed(machine, states[-1])


def _register_hook(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    receiver, kind, rest = args[0], args[1], args[2:]
    hook = rest[0] if rest else kwargs.get("hook")
    assert isinstance(machine, Recorder)
    where: Any = None
    if isinstance(receiver, Instance) and receiver.layer is not None:
        where = receiver.layer
    elif site is not None and isinstance(site.node, cst.Call) and isinstance(site.node.func, cst.Attribute):
        module = site.slice.code(site.node.func.value)
        where = "norm" if re.fullmatch(r"(?:[\w.]*\.)?(?:(?:final_)?norm|final_layernorm|ln_f)", module) else None
    if where is not None and hook is not None:
        machine.heap.touch(machine.hooks)
        machine.hooks.append((where, kind, hook))
    return Unknown("the handle of a hook", present=True)


def _cat(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """A state joined with padding, or with itself along the batch, stays that state; the rest is torch's."""
    parts = args[0] if args else kwargs.get("tensors")
    axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    if isinstance(parts, list | tuple) and axis in (0, 1, -2):
        tensors = [whole(part) for part in parts if isinstance(whole(part), Tensor)]
        beside = [part for part in parts if not isinstance(whole(part), Tensor)]
        alike = bool(tensors) and all(tensor == tensors[0] for tensor in tensors)
        padded = len(tensors) == 1 and bool(beside) and all(isinstance(part, Unknown) for part in beside)
        if padded or (alike and not beside and axis != 1):
            return tensors[0]
    return call_external(machine, "torch.cat", args, kwargs, site, None)


def _module_list(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """N modules that nothing is known of are the decoder layers of a model without source."""
    items = args[0] if args else None
    if isinstance(items, list) and len(items) == machine.num_layers and all(isinstance(i, Unknown) for i in items):
        return opaque_layers(machine)
    return call_external(machine, "torch.nn.ModuleList", args, kwargs, site, None)


def _bound(args: _Args) -> Any:
    if len(args) == 2 and isinstance(args[0], Function):
        return BoundMethod(args[0], args[1])
    return Partial(args[0], args[1:], {}) if args else Unknown("a bound method")


def _batch_item(args: _Args) -> Any:
    """``batch[key]``, ``batch.get(key)``: what is known of the batch."""
    known, key = args[0], args[1] if len(args) > 1 else None
    return known[key] if isinstance(key, str) and key in known else Unknown(f"{key} of a batch")


def _product(machine: Machine, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """Logits that are made without a module: the product of a state and the head's weight."""
    qualified = f"torch.nn.functional.{name}" if name == "linear" else f"torch.{name}"
    state = whole(args[0]) if args else whole(kwargs.get("input"))
    if isinstance(state, Tensor) and site is not None and isinstance(site.node, cst.Call):
        weights = [site.slice.code(argument.value) for argument in site.node.args[1:]]
        if any(_HEAD_WEIGHT.search(weight) for weight in weights):
            machine.record("head", name, state, site)
    return call_external(machine, qualified, args, kwargs, site, None)


def _linear(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    return _product(machine, "linear", args, kwargs, site)


def _matmul(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    return _product(machine, "matmul", args, kwargs, site)


def _opened(value: Any) -> Any:
    """A file of tensors that are read one by one."""
    methods = {name: Partial(External("file.item"), (value,), {}) for name in ("get_tensor", "get_slice")}
    return Instance(None, name="a file of tensors", attrs=dict(methods))


def _file_item(machine: Machine, args: _Args, site: Site | None) -> Any:
    if len(args) < 2 or site is None:
        return Unknown("a tensor of a file")
    return get_item(machine, args[0], args[1], site)


# --- the command line ----------------------------------------------------------------------------------------------


def _add_argument(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """Note an argument's default, as argparse makes it."""
    assert isinstance(machine, Recorder)
    flags = [arg for arg in args if isinstance(arg, str)]
    long = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    name = kwargs.get("dest", long.lstrip("-").replace("-", "_"))
    default = kwargs.get("default", MISSING)
    if default is MISSING:
        action = kwargs.get("action")
        default = {"store_true": False, "store_false": True}.get(action) if isinstance(action, str) else None
        if default is None:
            default = Unknown(f"the argument {long}")
    elif isinstance(default, str) and kwargs.get("type") is not None:
        default = call_value(machine, kwargs["type"], (default,), {}, site)
    if isinstance(name, str):
        if name in machine.arguments:
            default = Unknown(f"two arguments are called {long}")
        machine.heap.set(machine.arguments, name, default)
        if site is not None and isinstance(default, list | tuple | str):
            machine.record("argument", name, default, site)
    return Unknown("an argument", present=True)


def _parse_args(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    assert isinstance(machine, Recorder)
    if machine.arguments:
        machine.used_assumptions.add(DEFAULTS)
    return machine.new_instance(Instance(None, attrs=dict(machine.arguments), name="the command line"))


def _parse_known_args(machine: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    return _parse_args(machine, args, kwargs, site), Unknown("the arguments that the parser does not know")


_OF_PARSERS: dict[str, Callable[[Machine, _Args, dict[str, Any], Site | None], Any]] = {
    "add_argument": _add_argument,
    "parse_args": _parse_args,
    "parse_known_args": _parse_known_args,
}
