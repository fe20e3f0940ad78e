"""Expressions, parameters and arguments as libcst has them, from what Python's own parser read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from eaglelint.source.reading import Placed, Reading, Span, name_node, new_node, plain_node
from eaglelint.source.walk import children

__all__ = ["AUGMENTED", "annotation", "argument", "elements", "expression", "keyword", "parameters", "valued"]


def expression(node: ast.expr, reading: Reading) -> Any:
    return reading.node_of(node, _EXPRESSIONS)


def _attribute(node: ast.Attribute, reading: Reading) -> Any:
    line, end = node.end_lineno or 0, node.end_col_offset or 0
    place = Span(line, end - len(node.attr.encode()), line, end)
    return new_node(cst.Attribute, value=expression(node.value, reading), attr=name_node(node.attr, place, reading))


def _constant(node: ast.Constant, reading: Reading) -> Any:
    value = node.value
    if value is None or value is True or value is False:
        return new_node(cst.Name, value=repr(value))
    if value is ...:
        return new_node(cst.Ellipsis)
    text = reading.text(node)
    if isinstance(value, str | bytes):
        return new_node(cst.SimpleString, value=text) if _is_one_string(text) else _by_libcst(node, reading)
    kind = {int: cst.Integer, float: cst.Float, complex: cst.Imaginary}[type(value)]
    return new_node(kind, value=text)


def _is_one_string(text: str) -> bool:
    """Whether a string is written in one piece."""
    body = text.lstrip("rRbBuU")
    quote = body[:3] if body[:3] in ('"""', "'''") else body[:1]
    inner = body[len(quote) : -len(quote)]
    return quote not in inner or ("\\" in inner and _first_end(body, quote) == len(body))


def _first_end(body: str, quote: str) -> int:
    """Where the first string of a text ends."""
    at = len(quote)
    while not body.startswith(quote, at):
        at += 2 if body[at] == "\\" else 1
    return at + len(quote)


def _by_libcst(node: ast.expr, reading: Reading) -> Any:
    text = reading.text(node)
    found = cst.parse_expression(f"({text})" if "\n" in text else text)
    stack: list[cst.CSTNode] = [found]
    while stack:
        each = stack.pop()
        reading.near[id(each)] = node
        stack += children(each)
    return found


def _boolean(node: ast.BoolOp, reading: Reading) -> Any:
    first, *rest = node.values
    found = expression(first, reading)
    kind = cst.And if node.op.__class__ is ast.And else cst.Or
    for each in rest:
        found = new_node(cst.BooleanOperation, left=found, operator=plain_node(kind), right=expression(each, reading))
        if each is not rest[-1]:  # (a and b) and c
            line, column = _closed(each, reading)
            reading.places[id(found)] = Span(node.lineno, node.col_offset, line, column)
    return found


def _closed(node: ast.expr, reading: Reading) -> tuple[int, int]:
    """Line and column behind an expression and the parentheses around it."""
    end = line, column = node.end_lineno or 0, node.end_col_offset or 0
    while line <= len(reading.lines):
        rest = reading.lines[line - 1].encode()[column:]
        column += len(rest) - len(rest.lstrip())
        rest = rest.lstrip()
        if rest[:1] == b")":
            column += 1
            end = line, column
        elif not rest or rest[:1] == b"#":
            line, column = line + 1, 0
        else:
            break
    return end


def _binary(node: ast.BinOp, reading: Reading) -> Any:
    left, right = expression(node.left, reading), expression(node.right, reading)
    return new_node(cst.BinaryOperation, left=left, operator=plain_node(_BINARY[node.op.__class__]), right=right)


def _unary(node: ast.UnaryOp, reading: Reading) -> Any:
    operator = plain_node(_UNARY[node.op.__class__])
    return new_node(cst.UnaryOperation, operator=operator, expression=expression(node.operand, reading))


def _comparison(node: ast.Compare, reading: Reading) -> Any:
    targets = [
        new_node(
            cst.ComparisonTarget, operator=plain_node(_COMPARED[op.__class__]), comparator=expression(each, reading)
        )
        for op, each in zip(node.ops, node.comparators, strict=True)
    ]
    return new_node(cst.Comparison, left=expression(node.left, reading), comparisons=tuple(targets))


def _conditional(node: ast.IfExp, reading: Reading) -> Any:
    test, body = expression(node.test, reading), expression(node.body, reading)
    return new_node(cst.IfExp, test=test, body=body, orelse=expression(node.orelse, reading))


def _lambda(node: ast.Lambda, reading: Reading) -> Any:
    return new_node(cst.Lambda, params=parameters(node.args, reading), body=expression(node.body, reading))


def _subscript(node: ast.Subscript, reading: Reading) -> Any:
    items = [node.slice]
    if isinstance(node.slice, ast.Tuple) and node.slice.elts and not _is_enclosed(reading.text(node.slice)):
        items = node.slice.elts
    elements = tuple(new_node(cst.SubscriptElement, slice=_index(each, reading)) for each in items)
    return new_node(cst.Subscript, value=expression(node.value, reading), slice=elements)


def _is_enclosed(text: str) -> bool:
    """Whether a tuple stands in parentheses of its own, as (b, c) does and (b), (c) does not."""
    if not text.startswith("("):
        return False
    found = cst.parse_expression(f"f(\n{text}\n)")
    return isinstance(found, cst.Call) and len(found.args) == 1


def _index(node: ast.expr, reading: Reading) -> Any:
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        lower, upper, step = (None if each is None else expression(each, reading) for each in parts)
        found = new_node(cst.Slice, lower=lower, upper=upper, step=step)
    else:
        star = isinstance(node, ast.Starred)
        value = expression(node.value if isinstance(node, ast.Starred) else node, reading)
        found = new_node(cst.Index, value=value, star="*" if star else None)
    reading.near[id(found)] = node
    return found


def elements(nodes: Sequence[ast.expr], reading: Reading) -> tuple[Any, ...]:
    found = []
    for each in nodes:
        if isinstance(each, ast.Starred):
            found.append(new_node(cst.StarredElement, value=expression(each.value, reading)))
        else:
            found.append(new_node(cst.Element, value=expression(each, reading)))
        reading.near[id(found[-1])] = each
    return tuple(found)


def _display(kind: type[Any]) -> Callable[[Any, Reading], Any]:
    def convert(node: ast.List | ast.Set | ast.Tuple, reading: Reading) -> Any:
        return new_node(kind, elements=elements(node.elts, reading))

    return convert


def _dict(node: ast.Dict, reading: Reading) -> Any:
    elements = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            elements.append(new_node(cst.StarredDictElement, value=expression(value, reading)))
        else:
            elements.append(new_node(cst.DictElement, key=expression(key, reading), value=expression(value, reading)))
        reading.near[id(elements[-1])] = value if key is None else key
    return new_node(cst.Dict, elements=tuple(elements))


def _comprehension(kind: type[Any]) -> Callable[[Any, Reading], Any]:
    def convert(node: ast.ListComp | ast.SetComp | ast.GeneratorExp, reading: Reading) -> Any:
        return new_node(kind, elt=expression(node.elt, reading), for_in=_for_in(node.generators, reading))

    return convert


def _dict_comprehension(node: ast.DictComp, reading: Reading) -> Any:
    key, value = expression(node.key, reading), expression(node.value, reading)
    return new_node(cst.DictComp, key=key, value=value, for_in=_for_in(node.generators, reading))


def _for_in(generators: Sequence[ast.comprehension], reading: Reading) -> Any:
    first, *rest = generators
    found = new_node(
        cst.CompFor,
        target=expression(first.target, reading),
        iter=expression(first.iter, reading),
        ifs=tuple(new_node(cst.CompIf, test=expression(each, reading)) for each in first.ifs),
        inner_for_in=_for_in(rest, reading) if rest else None,
        asynchronous=plain_node(cst.Asynchronous) if first.is_async else None,
    )
    reading.near[id(found)] = first.target
    return found


def _yield_from(node: ast.YieldFrom, reading: Reading) -> Any:
    return new_node(cst.Yield, value=new_node(cst.From, item=expression(node.value, reading)))


def _named(node: ast.NamedExpr, reading: Reading) -> Any:
    return new_node(cst.NamedExpr, target=expression(node.target, reading), value=expression(node.value, reading))


def valued(kind: type[Any], name: str) -> Callable[[Any, Reading], Any]:
    """``return``, ``yield`` and the like: a keyword and perhaps a value."""

    def convert(node: Any, reading: Reading) -> Any:
        return new_node(kind, **{name: None if node.value is None else expression(node.value, reading)})

    return convert


# --- parameters and arguments ---------------------------------------------------------------------------------------


def annotation(node: ast.expr | None, reading: Reading) -> Any:
    return None if node is None else new_node(cst.Annotation, annotation=expression(node, reading))


def parameters(node: ast.arguments, reading: Reading) -> Any:
    def one(each: ast.arg, default: ast.expr | None = None, star: str = "") -> Any:
        param = new_node(
            cst.Param,
            name=name_node(each.arg, each, reading),
            annotation=annotation(each.annotation, reading),
            default=None if default is None else expression(default, reading),
            star=star,
        )
        reading.near[id(param)] = each
        return param

    given = [*node.posonlyargs, *node.args]
    defaults = [*[None] * (len(given) - len(node.defaults)), *node.defaults]
    positional = [one(each, default) for each, default in zip(given, defaults, strict=True)]
    first = len(node.posonlyargs)
    star_arg: Any = cst.MaybeSentinel.DEFAULT
    if node.vararg is not None:
        star_arg = one(node.vararg, star="*")
    elif node.kwonlyargs:
        star_arg = new_node(cst.ParamStar)
    return new_node(
        cst.Parameters,
        params=tuple(positional[first:]),
        star_arg=star_arg,
        kwonly_params=tuple(map(one, node.kwonlyargs, node.kw_defaults)),
        star_kwarg=None if node.kwarg is None else one(node.kwarg, star="**"),
        posonly_params=tuple(positional[:first]),
        posonly_ind=new_node(cst.ParamSlash) if first else cst.MaybeSentinel.DEFAULT,
    )


def argument(node: ast.expr, reading: Reading) -> Any:
    star = isinstance(node, ast.Starred)
    value = expression(node.value if isinstance(node, ast.Starred) else node, reading)
    found = new_node(cst.Arg, value=value, star="*" * star)
    reading.near[id(found)] = node
    return found


def keyword(node: ast.keyword, reading: Reading) -> Any:
    name = None if node.arg is None else name_node(node.arg, node, reading)
    found = new_node(cst.Arg, value=expression(node.value, reading), keyword=name, star="**" if name is None else "")
    reading.near[id(found)] = node
    return found


def _call(node: ast.Call, reading: Reading) -> Any:
    arguments = [argument(each, reading) for each in node.args]
    if node.keywords:
        keywords = [keyword(each, reading) for each in node.keywords]
        behind = _begin(node.keywords[0])
        after = sum(_begin(each) > behind for each in node.args)  # f(a=1, *b)
        arguments += keywords
        if after:
            begins = [*map(_begin, node.args), *map(_begin, node.keywords)]
            arguments = [arguments[each] for each in sorted(range(len(begins)), key=begins.__getitem__)]
    return new_node(cst.Call, func=expression(node.func, reading), args=tuple(arguments))


def _begin(node: Placed) -> tuple[int, int]:
    return node.lineno, node.col_offset


# --- the kinds of expressions ---------------------------------------------------------------------------------------

_EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Reading], Any]] = {
    ast.Name: lambda node, reading: new_node(cst.Name, value=node.id),
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.JoinedStr: _by_libcst,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.BoolOp: _boolean,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.IfExp: _conditional,
    ast.Lambda: _lambda,
    ast.Tuple: _display(cst.Tuple),
    ast.List: _display(cst.List),
    ast.Set: _display(cst.Set),
    ast.Dict: _dict,
    ast.ListComp: _comprehension(cst.ListComp),
    ast.SetComp: _comprehension(cst.SetComp),
    ast.GeneratorExp: _comprehension(cst.GeneratorExp),
    ast.DictComp: _dict_comprehension,
    ast.Await: lambda node, reading: new_node(cst.Await, expression=expression(node.value, reading)),
    ast.Yield: valued(cst.Yield, "value"),
    ast.YieldFrom: _yield_from,
    ast.NamedExpr: _named,
}

_OPERATORS = (
    "Add Subtract Multiply Divide FloorDivide Modulo MatrixMultiply Power LeftShift RightShift BitAnd BitOr BitXor"
)
_READ = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.Pow, ast.LShift, ast.RShift,
    ast.BitAnd, ast.BitOr, ast.BitXor,
)  # fmt: skip
_BINARY = {kind: getattr(cst, name) for kind, name in zip(_READ, _OPERATORS.split(), strict=True)}
AUGMENTED = {kind: getattr(cst, f"{name}Assign") for kind, name in zip(_READ, _OPERATORS.split(), strict=True)}
_UNARY: dict[type[ast.unaryop], type[Any]] = {
    ast.Not: cst.Not,
    ast.USub: cst.Minus,
    ast.UAdd: cst.Plus,
    ast.Invert: cst.BitInvert,
}
_COMPARED: dict[type[ast.cmpop], type[Any]] = {
    ast.Eq: cst.Equal,
    ast.NotEq: cst.NotEqual,
    ast.Lt: cst.LessThan,
    ast.LtE: cst.LessThanEqual,
    ast.Gt: cst.GreaterThan,
    ast.GtE: cst.GreaterThanEqual,
    ast.Is: cst.Is,
    ast.IsNot: cst.IsNot,
    ast.In: cst.In,
    ast.NotIn: cst.NotIn,
}
