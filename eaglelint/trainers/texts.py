"""Chat templates that training code applies, and texts with numbers in them that it sorts as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import libcst as cst

from eaglelint.practice import TemplateUse, TextSort
from eaglelint.recursion import deep_recursion
from eaglelint.source.index import FunctionInfo
from eaglelint.source.lookup import MISSING
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, Raised
from eaglelint.source.slices import Site, Slice
from eaglelint.source.tree import SourceModule, SourceTree
from eaglelint.source.values import Unknown
from eaglelint.survey.places import place_of, place_of_node
from eaglelint.trainers.files import Entry, entries
from eaglelint.trainers.outside import Recorder
from eaglelint.trainers.runs import start_entry

__all__ = ["templates_and_sorts"]

_TEMPLATES = ("apply_chat_template", "chat_template_kwargs")
_ASKED = "chat_template_kwargs"
# Parameters of apply_chat_template itself (transformers 5.24); every other keyword is handed to the template.
_OWN = frozenset(
    [
        "add_generation_prompt",
        "add_special_tokens",  # and others of the tokenizer's own
        "return_attention_mask",
        "return_offsets_mapping",
        "return_special_tokens_mask",
        "verbose",
        "chat_template",
        "continue_final_message",
        "conversation",
        "documents",
        "load_audio_from_video",
        "max_length",
        "messages",
        "num_frames",
        "padding",
        "processor_kwargs",
        "return_assistant_tokens_mask",
        "return_dict",
        "return_tensors",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
        "video_fps",
    ]
)
_BUDGET = Budget(steps=8_000)
_SORTS = re.compile(
    r"\b(?:enumerate|zip)\([\s\S]{0,200}?\bsorted\(|\bin\s+sorted\("
)  # a quick test, for what _Texts looks at
# What only measures a draft generates no samples for its training.
_MEASURES = re.compile(r"(?:^|[/_])(?:bench|benchmarks?|eval|evals|evaluation)(?=[/_.])")
_FILES = re.compile(r"\b(?:i?glob|rglob|listdir|iterdir|scandir)\b")


def templates_and_sorts(tree: SourceTree, files: list[Path]) -> tuple[tuple[TemplateUse, ...], tuple[TextSort, ...]]:
    """Both, in the order of the files."""
    templates: dict[TemplateUse, None] = {}
    sorts: dict[TextSort, None] = {}
    starts = entries(tree, files, _has_mark)
    for entry in starts:
        text = _text(entry)
        if not _MEASURES.search(entry.module.display) and any(mark in text for mark in _TEMPLATES):
            templates |= dict.fromkeys(_templates(tree, entry))
    sorting = [piece for entry in starts if _SORTS.search(_text(entry)) for piece in _pieces(entry)]
    saving = (piece for entry in starts if sorting and _counts_and_saves(_text(entry)) for piece in _pieces(entry))
    saved = next((found for piece in saving for found in _numbered_files(piece)), None)
    for piece in sorting:
        sorts |= dict.fromkeys(_sorts(piece, saved))
    return tuple(templates), tuple(sorts)


def _counts_and_saves(text: str) -> bool:
    """A quick test: may it save a file under a number that it counts?"""
    return ("save" in text or "dump" in text) and ("enumerate(" in text or "range(" in text)


def _has_mark(module: SourceModule, info: FunctionInfo) -> bool:
    text = module.text(info.line, info.end_line)
    return any(mark in text for mark in (*_TEMPLATES, "sorted(", ".sort(", "save", "dump("))


def _text(entry: Entry) -> str:
    if entry.function is not None:
        return entry.module.text(entry.function.line, entry.function.end_line)
    return "".join(entry.module.text(*span) for span in entry.module.index.statements)


def _pieces(entry: Entry) -> Iterator[Slice]:
    spans = [(entry.function.line, entry.function.end_line)] if entry.function else entry.module.index.statements
    for span in spans:
        with suppress(SyntaxError):
            yield entry.module.slice(*span)


# --- templates -----------------------------------------------------------------------------------------------------


def _templates(tree: SourceTree, entry: Entry) -> list[TemplateUse]:
    """The uses on the paths through one entry, with the options that are known."""
    machine = Recorder(tree, num_layers=4, on_record=lambda event: None, budget=_BUDGET)
    found: list[TemplateUse] = []
    outside_call = machine.outside_call

    def applied(machine: Machine, args: Any, kwargs: dict[str, Any], site: Site | None) -> Any:
        if site is not None:
            found.append(_use({k: v for k, v in kwargs.items() if k not in _OWN}, site))
        return Unknown("a conversation as text")

    def call(callee: Any, name: str, args: Any, kwargs: dict[str, Any], site: Site | None) -> Any:
        asked = _asked((args, kwargs))
        if asked is not None and site is not None:
            found.append(_use(asked, site, asked=True))
        return outside_call(callee, name, args, kwargs, site) if outside_call is not None else MISSING

    def posted(machine: Machine, args: Any, kwargs: dict[str, Any], site: Site | None) -> Any:
        call(None, "post", args, kwargs, site)
        return Unknown("an answer")

    machine.outside_call = call
    machine.intercepts |= {"apply_chat_template()": applied, "requests.post": posted, "httpx.post": posted}

    def once() -> None:
        with suppress(Raised):
            start_entry(machine, entry, {}, more=Unknown("further arguments", present=True))

    with suppress(BudgetExceeded, RecursionError), deep_recursion():
        machine.explore(once, None)
    return found


def _use(given: dict[str, Any], site: Site, *, asked: bool = False) -> TemplateUse:
    known = {key: value for key, value in given.items() if isinstance(value, bool | int | str)}
    return TemplateUse(
        tuple(sorted(known.items())), place_of(site), asked, tuple(sorted(key for key in given if key not in known))
    )


def _asked(value: Any, depth: int = 0) -> dict[str, Any] | None:
    """The options for the template in what a server is asked."""
    if depth > 4:
        return None
    if isinstance(value, dict):
        if isinstance(value.get(_ASKED), dict):
            return {key: item for key, item in value[_ASKED].items() if isinstance(key, str)}
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((found for item in value if (found := _asked(item, depth + 1)) is not None), None)
    return None


# --- sorts ---------------------------------------------------------------------------------------------------------


def _numbered_files(piece: Slice) -> Iterator[cst.CSTNode | Any]:
    """The names, with numbers that are not padded, under which files are saved."""
    counters = _Counters()
    for statement in piece.body:
        statement.visit(counters)
    saves = _Saves(counters.names)
    for statement in piece.body:
        statement.visit(saves)
    for node in saves.found:
        yield place_of_node(piece, node)


def _sorts(piece: Slice, saved: Any) -> Iterator[TextSort]:
    counters = _Counters()
    for statement in piece.body:
        statement.visit(counters)
    texts = _Texts(counters.names)
    for statement in piece.body:
        statement.visit(texts)
    for call, name in texts.sorted:
        made = texts.made.get(name)
        if made is not None:
            yield TextSort(place_of_node(piece, made), place_of_node(piece, call))
        elif saved is not None and _FILES.search(name):
            yield TextSort(saved, place_of_node(piece, call))


class _Counters(cst.CSTVisitor):
    """Names that count: ``for i in range(...)``, ``for i, x in enumerate(...)``."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_For(self, node: cst.For) -> None:
        self._note(node.target, node.iter)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._note(node.target, node.iter)

    def _note(self, target: cst.CSTNode, iterated: cst.CSTNode) -> None:
        called = iterated.func.value if isinstance(iterated, cst.Call) and isinstance(iterated.func, cst.Name) else ""
        if called == "enumerate" and isinstance(target, cst.Tuple):
            target = target.elements[0].value
        if called in ("enumerate", "range") and isinstance(target, cst.Name):
            self.names.add(target.value)


def _numbered(node: cst.CSTNode, counters: set[str]) -> bool:
    """``f"req_{i}"``: a number that is not padded, so that 10 comes before 2."""
    return isinstance(node, cst.FormattedString) and any(
        isinstance(part, cst.FormattedStringExpression)
        and isinstance(part.expression, cst.Name)
        and part.expression.value in counters
        and part.format_spec is None
        for part in node.parts
    )


class _Saves(cst.CSTVisitor):
    def __init__(self, counters: set[str]) -> None:
        self.counters = counters
        self.found: list[cst.CSTNode] = []

    def visit_Call(self, node: cst.Call) -> None:
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        name = node.func.value if isinstance(node.func, cst.Name) else name
        if "save" in name or "dump" in name:
            reader = _Formatted(self.counters)
            for argument in node.args:
                argument.value.visit(reader)
            self.found += reader.found[:1]


class _Formatted(cst.CSTVisitor):
    def __init__(self, counters: set[str]) -> None:
        self.counters = counters
        self.found: list[cst.CSTNode] = []

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        if _numbered(node, self.counters):
            self.found.append(node)


class _Texts(cst.CSTVisitor):
    """Variables that hold numbered texts, and sorts whose order then counts."""

    def __init__(self, counters: set[str]) -> None:
        self.counters = counters
        self.made: dict[str, cst.CSTNode] = {}
        self.texts: dict[str, cst.CSTNode] = {}
        self.sorted: list[tuple[cst.Call, str]] = []
        self._module = cst.Module(body=[])

    def _is_numbered(self, node: cst.CSTNode) -> cst.CSTNode | None:
        if _numbered(node, self.counters):
            return node
        return self.texts.get(node.value) if isinstance(node, cst.Name) else None

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in (item.target for item in node.targets):
            value = node.value
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                index = target.slice[0].slice
                key = self._is_numbered(index.value) if isinstance(index, cst.Index) else None
                if key is not None:
                    self.made[target.value.value] = key
            elif isinstance(target, cst.Name):
                item = value.elt if isinstance(value, cst.ListComp | cst.SetComp) else None
                item = value.key if isinstance(value, cst.DictComp) else item
                if item is not None and (text := self._is_numbered(item)) is not None:
                    self.made[target.value] = text
                elif (text := self._is_numbered(value)) is not None:
                    self.texts[target.value] = text

    def visit_Call(self, node: cst.Call) -> None:
        name = node.func.value if isinstance(node.func, cst.Name) else ""
        if name in ("enumerate", "zip"):
            for argument in node.args:
                self._note(argument.value)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "append" and node.args:
            holder = node.func.value
            text = self._is_numbered(node.args[0].value)
            if text is not None and isinstance(holder, cst.Name):
                self.made[holder.value] = text

    def visit_ListComp(self, node: cst.ListComp) -> None:
        self._note(node.for_in.iter, files=False)

    def _note(self, node: cst.CSTNode, *, files: bool = True) -> None:
        """A sort without a key of its own, of a variable or of a directory's files."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value != "sorted":
            return
        if any(argument.keyword is not None and argument.keyword.value == "key" for argument in node.args):
            return
        what = node.args[0].value if node.args else None
        while isinstance(what, cst.Call) and isinstance(what.func, cst.Attribute) and not what.args:
            if what.func.attr.value not in ("items", "keys"):
                break
            what = what.func.value
        if isinstance(what, cst.Name):
            self.sorted.append((node, what.value))
        elif isinstance(what, cst.Call) and files:
            self.sorted.append((node, self._module.code_for_node(what.func)))
