"""What SGLang makes of a target's config when it reads it: the language model's keys stand at the top as well."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from eaglelint.engines.base import EngineSource
from eaglelint.source.construct import function_node
from eaglelint.source.machine import BudgetExceeded, Machine, Raised
from eaglelint.source.slices import Slice
from eaglelint.source.statements import run_block
from eaglelint.source.tree import SourceModule
from eaglelint.source.values import Env, External, Frame, Function, Instance, Partial
from eaglelint.source.walk import walk

__all__ = ["find_reader", "read_config"]

# What a config of several models has no value of its own for: else it would not be that of the language model.
_SIZE = re.compile(r"num_\w+|\w+_(?:size|dim|rank|layers)")
_READER = "srt config reader"


def find_reader(machine: Machine, source: EngineSource) -> None:
    """Remember the function that copies the keys, in the file that reads configs."""
    found = source.tree.find_function("get_config", (source.package / "srt" / "utils",))
    machine.memo[_READER] = None if found is None else source.tree.once(_READER, lambda: _reader(found.module))


def read_config(machine: Machine, target: Instance) -> None:
    """Add what the engine's reader copies from the target's ``text_config``, as far as it is a size.

    Other keys may have a default of the config's class, which is not known here.
    """
    reader, text = machine.memo.get(_READER), target.attrs.get("text_config")
    if reader is None or not isinstance(text, Instance):
        return
    own = {key: value for key, value in text.attrs.items() if key not in ("get_text_config", "text_config")}
    if all(key in target.attrs for key in own):
        return
    function, piece, copying = reader
    items = Partial(External("intrinsic.given"), (list(own.items()),), {})
    nested = Instance(None, attrs={**own, "items": items, "__dict__": own}, name="text_config", closed=True)
    read = machine.new_instance(Instance(None, attrs=dict(target.attrs), name="config", closed=True))
    variables: dict[str, Any] = {"model": "target", "config": read, "text_config": nested}
    frame = Frame(piece, function.module, Env(variables), function.info.name, None, None)
    try:
        run_block(machine, (copying,), frame)
    except (BudgetExceeded, Raised):
        return
    for key in own:
        if key not in target.attrs and key in read.attrs and _SIZE.fullmatch(key):
            machine.heap.set(target.attrs, key, read.attrs[key])


def _reader(module: SourceModule) -> tuple[Function, Slice, cst.If] | None:
    """The statement that asks for ``text_config`` and sets attributes of ``config``, and the function it stands in."""
    methods = (info for cls in module.index.classes.values() for info in cls.methods.values())
    for info in (*module.index.functions.values(), *methods):
        text = module.text(info.line, info.end_line)
        if "setattr(config" not in text or "text_config" not in text:
            continue
        function = Function(module, info)
        piece, node = function_node(function)
        for found in walk(node):
            if isinstance(found, cst.If) and _asks(found.test) and any(map(_sets, walk(found.body))):
                return function, piece, found
    return None


def _asks(test: cst.BaseExpression) -> bool:
    return any(isinstance(node, cst.Name) and node.value == "text_config" for node in walk(test))


def _sets(node: cst.CSTNode) -> bool:
    match node:
        case cst.Call(func=cst.Name("setattr"), args=[cst.Arg(value=cst.Name("config")), *_]):
            return True
    return False
