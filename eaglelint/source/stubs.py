"""Summaries: short code that stands for a function which goes below what can be told statically.

Each summary names the release and line where its meaning was read, and fingerprints of the functions it stands for.
A source with other fingerprints is still interpreted with it, and the answer says so.
"""

from __future__ import annotations

import hashlib
import io
import tokenize
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import libcst as cst

from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.slices import Slice, parse_slice
from eaglelint.source.tree import SourceModule, SourceTree

__all__ = ["Stub", "fingerprint", "load_stubs"]


@dataclass(frozen=True, slots=True)
class Stub:
    """One summary. ``covers`` maps ``module:Class.function`` to the fingerprint that it was read with."""

    name: str
    module: str
    function: str
    release: str
    line: int
    covers: dict[str, str]
    slice: Slice
    node: cst.FunctionDef

    def unverified(self, tree: SourceTree) -> str | None:
        """The function that is not as it was when the summary was written, or None where all are."""
        for place, expected in self.covers.items():
            text = _function_text(tree, place)
            if text is None or fingerprint(text) != expected:
                return place
        return None

    def stands_for(self, tree: SourceTree) -> tuple[str, int, str] | None:
        """The file, line and first line of the function in the scanned source; None where it has none."""
        module = tree.module(self.module)
        info = _find(module, self.function) if module is not None else None
        if module is None or info is None:
            return None
        return module.display, info.line, module.text(info.line, info.line)


@cache
def load_stubs(package: str) -> dict[tuple[str, str], Stub]:
    """The summaries for a package, by module and function."""
    import sys
    from importlib.resources import files

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    resource = files("eaglelint.engines.summaries") / f"{package}.toml"
    if not resource.is_file():
        return {}
    rows: list[dict[str, Any]] = tomllib.loads(resource.read_text("utf-8")).get("summary", [])
    stubs = {}
    for row in rows:
        lines = [line + "\n" for line in row["code"].strip("\n").split("\n")]
        piece = parse_slice(f"summary of {row['function']}", lines, 1, len(lines))
        node = next(statement for statement in piece.body if isinstance(statement, cst.FunctionDef))
        stub = Stub(
            f"{row['function']}",
            row["module"],
            row["function"],
            row["release"],
            row["line"],
            row["covers"],
            piece,
            node,
        )
        stubs[stub.module, stub.function] = stub
    return stubs


@lru_cache(maxsize=1024)
def fingerprint(source: str) -> str:
    """A hash of a function's tokens: comments, docstrings, blank lines and layout do not count."""
    kept = []
    fresh = True  # at the start of a statement, where a bare string is a docstring
    try:
        for token in tokenize.generate_tokens(io.StringIO(_dedent(source)).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                continue
            if token.type == tokenize.NEWLINE:
                fresh = True
                continue
            if fresh and token.type == tokenize.STRING:
                continue
            fresh = False
            kept.append(token.string)
    except (tokenize.TokenError, IndentationError):
        kept = source.split()
    return hashlib.sha256(" ".join(kept).replace(", )", " )").encode()).hexdigest()[:16]


def _dedent(source: str) -> str:
    import textwrap

    return textwrap.dedent(source)


def _function_text(tree: SourceTree, place: str) -> str | None:
    module_name, _, qualname = place.partition(":")
    module = tree.module(module_name)
    if module is None:
        return None
    info = _find(module, qualname)
    return None if info is None else module.text(info.line, info.end_line)


def _find(module: SourceModule, qualname: str) -> FunctionInfo | ClassInfo | None:
    owner, _, name = qualname.rpartition(".")
    if not owner:
        return module.index.functions.get(name) or module.index.classes.get(name)
    cls = module.index.classes.get(owner)
    return cls.methods.get(name) if cls else None
