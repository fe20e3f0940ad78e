"""Python's ``re`` on texts that are known, for code that renames by pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from eaglelint.source.machine import Machine
from eaglelint.source.slices import Site
from eaglelint.source.values import External, Instance, Partial, Unknown

__all__ = ["call_re"]

_Args = tuple[Any, ...]

_SEARCHES: dict[str, Callable[[re.Pattern[str], str], Any]] = {
    "match": re.Pattern.match,
    "fullmatch": re.Pattern.fullmatch,
    "search": re.Pattern.search,
    "findall": re.Pattern.findall,
    "finditer": lambda pattern, text: list(pattern.finditer(text)),
}
_METHODS = (*_SEARCHES, "sub", "split")
_LONGEST = 300
# A pattern comes out of foreign code: one whose search may take long is not tried. Three repeats one after the other
# take the cube of the text's length at most; one inside of another may take for ever.
_MOST_REPEATS = 3
_ESCAPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]", re.DOTALL)
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}")
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{\d)")
_BACKREFERENCE = re.compile(r"\\[1-9]|\(\?P=")


def call_re(machine: Machine, name: str, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
    """A function of ``re``, or a method of a pattern (``re.sub`` with the pattern first) or of a match."""
    short = name.removeprefix("re.")
    if short == "escape" and len(args) == 1 and isinstance(args[0], str):
        return re.escape(args[0])
    if kwargs or not args or (short == "compile" and len(args) != 1):
        return Unknown(f"{name} with options")
    if isinstance(args[0], Instance) and isinstance(args[0].attrs.get("pattern"), str):
        args = (args[0].attrs["pattern"], *args[1:])
    pattern = _compiled(args[0])
    if pattern is None:
        return Unknown(f"{name} of a pattern that is not known, or too costly")
    if short == "compile":
        return _pattern(machine, pattern)
    texts = args[2:] if short == "sub" else args[1:]
    if len(texts) != 1 or not isinstance(texts[0], str) or len(texts[0]) > _LONGEST:
        return Unknown(f"{name} of a text that is not known")
    if short == "sub":
        return _sub(machine, pattern, args[1], texts[0], site)
    if short == "split":
        return machine.heap.born(pattern.split(texts[0]))
    if short not in _SEARCHES:
        return Unknown(name)
    found = _SEARCHES[short](pattern, texts[0])
    if isinstance(found, list):
        return machine.heap.born([_match(machine, item) for item in found])
    return _match(machine, found)


def _compiled(text: Any) -> re.Pattern[str] | None:
    if not isinstance(text, str) or len(text) > _LONGEST or _BACKREFERENCE.search(text):
        return None
    bare = _ESCAPED.sub("x", text)
    if len(_REPEAT.findall(bare)) > _MOST_REPEATS or _REPEATED_GROUP.search(bare):
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return None


def _pattern(machine: Machine, pattern: re.Pattern[str]) -> Instance:
    made = Instance(None, name="re.Pattern", closed=True)
    made.attrs |= {name: Partial(External(f"re.{name}"), (pattern.pattern,), {}) for name in _METHODS}
    made.attrs["pattern"] = pattern.pattern
    return machine.new_instance(made)


def _match(machine: Machine, found: Any) -> Any:
    """A match as an object of plain data; texts and None stand for themselves."""
    if not isinstance(found, re.Match):
        return found
    groups: dict[Any, Any] = {**dict(enumerate((found.group(), *found.groups()))), **found.groupdict()}

    def group(_: Machine, args: _Args, kwargs: dict[str, Any], site: Site | None) -> Any:
        names = args[1:] or (0,)
        if kwargs or not all(isinstance(name, int | str) and name in args[0] for name in names):
            return Unknown("a group of a match that is not known")
        texts = tuple(args[0][name] for name in names)
        return texts[0] if len(texts) == 1 else texts

    machine.intercepts["match.group"] = group
    machine.intercepts["match.answer"] = lambda _, args, kwargs, site: args[0]
    made = Instance(None, name="re.Match", closed=True)
    for name in ("group", "__getitem__"):
        made.attrs[name] = Partial(External("match.group"), (groups,), {})
    for name, value in (("groups", found.groups()), ("start", found.start()), ("end", found.end())):
        made.attrs[name] = Partial(External("match.answer"), (value,), {})
    return machine.new_instance(made)


def _sub(machine: Machine, pattern: re.Pattern[str], by: Any, text: str, site: Site | None) -> Any:
    from eaglelint.source.calls import call_value

    if isinstance(by, str):
        try:
            return pattern.sub(by, text)
        except (re.error, IndexError):
            return Unknown("a replacement that is not understood")
    if isinstance(by, Unknown):
        return Unknown("a replacement that is not known")
    pieces, end = [], 0
    for found in pattern.finditer(text):
        piece = call_value(machine, by, (_match(machine, found),), {}, site)
        if not isinstance(piece, str):
            return Unknown("a replacement that is not known")
        pieces += [text[end : found.start()], piece]
        end = found.end()
    return "".join([*pieces, text[end:]])
