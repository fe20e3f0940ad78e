"""Functions that are not among the files: which results are made of what they are handed, and in which way."""

from __future__ import annotations

import ast
import builtins
import re

from eaglelint.trace.graph import CallSite, Edge, Node
from eaglelint.trace.project import External, Module
from eaglelint.trace.reading import Reading
from eaglelint.trace.types import Place

__all__ = ["OF_TENSORS", "Outside"]

# Functions and methods whose result says something about a value, and is not made of it.
_TELLS = frozenset(
    re.findall(
        r"\w+",
        """abs all any bool callable dir hasattr hash id isinstance issubclass len print range repr str type debug error
        exception info log warn warning count dim element_size endswith get_device index is_contiguous item nelement
        numel size startswith storage_offset stride data_ptr keys join format""",
    )
)
# Methods that tensors, events and files have: on a receiver of unknown class they say nothing about the class.
OF_TENSORS = frozenset(
    re.findall(
        r"\w+",
        """abs add all any apply chunk clamp clone close contiguous cpu cuda detach div double dim exp expand flatten
        float flush gather half index_select int item long max mean min mul narrow nonzero norm numel numpy permute read
        record repeat reset reshape round run scatter select shape size sort split squeeze start stop sum synchronize t
        to tolist topk transpose type unbind unflatten unfold unsqueeze view wait where write zero""",
    )
)
_SAME = frozenset(["list", "tuple", "sorted", "set", "frozenset", "reversed", "iter", "copy", "deepcopy", "cast"])


class Outside(Reading):
    """What a call of such a function does with its arguments."""

    def link_outside(self, call: CallSite, function: ast.expr) -> None:
        """A function that is not among the files: its result is made of its arguments, in a way not known."""
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _TELLS or name.startswith(("is_", "has_")):
            return
        keeps = name in _SAME
        certain = self._is_known_outside(function, self.place(call.scope))
        written = ast.unparse(function) if len(name) < 80 else name
        for where, sources in [*call.arguments, ("self", call.receiver)]:
            for start, push in sources:
                if self._is_module(self.graph.nodes[start]):
                    continue
                whole = ("!",) if where == "self" and sources is call.receiver else ()  # no method of a tuple
                placed, how = push if keeps else (), f"through {written}"
                self.graph.edge(start, Edge(call.result, placed, whole, reset=not keeps, certain=certain, how=how))

    def _is_known_outside(self, function: ast.expr, place: Place) -> bool:
        """Whether it is known what is called, though its code is elsewhere: a built-in, ``torch.cat``, ``x.view``."""
        if isinstance(function, ast.Attribute) and (function.attr in OF_TENSORS or function.attr.endswith("_")):
            return True
        if isinstance(function, ast.Attribute) and self.types.made_outside(function, place):
            return True
        if isinstance(function, ast.Name) and hasattr(builtins, function.id):
            return True
        return isinstance(function, ast.Lambda) or self.types.is_outside(function, place)

    def _is_module(self, node: Node) -> bool:
        """Whether a name stands for a module or something imported from outside: ``torch`` in ``torch.cat``."""
        if not node.free or node.attribute:
            return False
        return isinstance(self.types.meaning(ast.Name(node.name), self.place(node.scope)), Module | External)
