"""Names across files: imports of all forms, circles, and paths that lead nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.tree import Binding, SourceTree


def where(tree: SourceTree, module: str, name: str) -> str | None:
    """What a name resolves to: the module that defines it, with a colon, or the dotted name from outside."""
    start = tree.module(module)
    assert start is not None
    found = tree.resolve(start, name)
    if not isinstance(found, Binding):
        return found
    kind = type(found.item).__name__
    return f"{found.module.name}:{'' if kind == 'NoneType' else kind}"


def test_imports_of_all_forms(sources: Any) -> None:
    """Absolute, relative, by another name, through a package's re-export, through a star, and from outside."""
    tree = sources(
        {
            "pkg/__init__.py": "from .inner import Model as Exported\nfrom . import helper\n",
            "pkg/inner.py": "class Model: pass\ndef build(): pass\nSIZE = 3\n",
            "pkg/helper.py": "from pkg.inner import *\n",
            "pkg/sub/__init__.py": "",
            "pkg/sub/deep.py": "from ..inner import build\nfrom .. import helper\nfrom . import sibling\n",
            "pkg/sub/sibling.py": "",
            "main.py": "import torch\nfrom torch import nn as n\nfrom pkg import Exported, helper\nimport pkg.inner\nfrom pkg import missing\n",
        }
    )
    assert [where(tree, "main", name) for name in ("torch", "n", "Exported", "helper", "pkg", "nowhere")] == [
        "torch",
        "torch.nn",
        "pkg.inner:ClassInfo",
        "pkg.helper:",
        "pkg:",
        None,
    ]
    assert where(tree, "pkg.sub.deep", "build") == "pkg.inner:FunctionInfo"
    assert where(tree, "pkg.sub.deep", "sibling") == "pkg.sub.sibling:"
    assert where(tree, "pkg.helper", "SIZE") == "pkg.inner:tuple"
    assert where(tree, "main", "missing") == "pkg.missing"


def test_a_star_does_not_bring_private_names(sources: Any) -> None:
    """As in Python."""
    tree = sources({"a.py": "from b import *\n", "b.py": "_hidden = 1\nshown = 2\n"})
    assert (where(tree, "a", "_hidden"), where(tree, "a", "shown")) == (None, "b:tuple")


def test_import_circles_end(sources: Any) -> None:
    """Modules that import each other, a module that imports itself, stars in a circle."""
    tree = sources(
        {
            "a.py": "from b import x\nfrom b import y\n",
            "b.py": "from a import x\ny = 1\n",
            "c.py": "from c import z\n",
            "d.py": "from e import *\n",
            "e.py": "from d import *\n",
        }
    )
    assert where(tree, "a", "y") == "b:tuple"
    assert [where(tree, "a", "x"), where(tree, "c", "z"), where(tree, "d", "w")] == [None, None, None]


def test_relative_imports_above_the_root(sources: Any) -> None:
    """Too many dots lead nowhere."""
    tree = sources({"pkg/__init__.py": "", "pkg/a.py": "from .....up import x\n"})
    module = tree.module("pkg.a")
    assert tree.resolve(module, "x") in (None, "up.x")


def test_files_that_do_not_parse_are_named(sources: Any, tmp_path: Path) -> None:
    """The rest is there; the broken file is named with the line, once."""
    tree = sources({"good.py": "from bad import x\n", "bad.py": "x = 1\ndef (:\n"})
    assert where(tree, "good", "x") == "bad.x"
    assert tree.module("bad") is None
    assert tree.unreadable == {"bad.py": "bad.py:2: invalid syntax"}


def test_find_in_directories(sources: Any, tmp_path: Path) -> None:
    """Classes and functions by name, found before anything is parsed; nested ones do not count."""
    tree = sources(
        {
            "pkg/one.py": "class Outer:\n    class Model: pass\n    def build(self): pass\n",
            "pkg/two.py": "class Model: pass\nasync def build(): pass\n",
            "pkg/three.py": "# class Model in a comment\n",
        }
    )
    found = tree.find_class("Model", (tmp_path / "pkg",))
    assert found is not None and found.module.name == "pkg.two" and isinstance(found.item, ClassInfo)
    function = tree.find_function("build", (tmp_path / "pkg",))
    assert function is not None and isinstance(function.item, FunctionInfo)
    assert tree.find_class("Absent", (tmp_path / "pkg",)) is None
    assert tree.find_class("Model", (tmp_path / "nowhere",)) is None


def test_a_link_that_leads_back(sources: Any, tmp_path: Path) -> None:
    """A directory that holds a link to itself is searched once."""
    tree = sources({"pkg/one.py": "class Model: pass\n"})
    (tmp_path / "pkg/again").symlink_to(tmp_path / "pkg")
    (tmp_path / "pkg/self.py").symlink_to(tmp_path / "pkg/self.py")
    assert [path.name for path in tree.files(tmp_path / "pkg")] == ["one.py"]
    found = tree.find_class("Model", (tmp_path / "pkg",))
    assert found is not None and found.module.name == "pkg.one"


@pytest.mark.parametrize(
    "source",
    [
        b"X = 1\r\ndef f():\r\n    return 2\r\n",
        b"\xef\xbb\xbfX = 1\ndef f():\n    return 2\n",
        b"X = '\x0c'\ndef f():\n    return 2\n",
    ],
)
def test_lines_as_python_counts_them(tmp_path: Path, source: bytes) -> None:
    """The text of a function is the text that Python sees on these lines."""
    (tmp_path / "a.py").write_bytes(source)
    module = SourceTree((tmp_path,)).module("a")
    assert module is not None
    info = module.index.functions["f"]
    assert (info.line, module.text(info.line, info.end_line)) == (2, "def f():\n    return 2\n")


def test_a_file_that_is_no_utf8(tmp_path: Path) -> None:
    """Another declared encoding is read; its text may lose characters, its names and lines stay."""
    (tmp_path / "a.py").write_bytes(b"# -*- coding: latin-1 -*-\nX = '\xe9'\ndef f():\n    return 2\n")
    module = SourceTree((tmp_path,)).module("a")
    assert module is not None and module.index.functions["f"].line == 3


def test_two_roots(tmp_path: Path) -> None:
    """The first root that has a module has it."""
    for root, text in (("one", "X = 1\n"), ("two", "X = 2\nY = 2\n")):
        (tmp_path / root).mkdir()
        (tmp_path / root / "a.py").write_text(text, "utf-8")
    tree = SourceTree((tmp_path / "one", tmp_path / "two"))
    module = tree.module_at(tmp_path / "one/a.py")
    assert module is tree.module("a") and set(module.index.assignments) == {"X"}  # type: ignore[union-attr]
    assert tree.module_at(tmp_path.parent / "elsewhere.py") is None


BROKEN = """\
def sound():
    return 1


def broken():
    return = 2


class Holder:
    def method(self, x):
        return x +
"""


def test_a_function_that_is_no_python(sources: Any, tmp_path: Path) -> None:
    """In a tree whose functions are not looked into, the file is named once one is asked for; it raises."""
    sources({"mixed.py": BROKEN})
    tree = SourceTree((tmp_path,), relative_to=tmp_path, outlines=True)
    module = tree.module("mixed")
    assert module is not None and tree.unreadable == {}
    index = module.index
    lines = {name: (info.line, info.end_line) for name, info in index.functions.items()}
    assert lines == {"sound": (1, 2), "broken": (5, 6)}
    module.slice(*lines["sound"])
    assert tree.unreadable == {}
    for info in (index.functions["broken"], index.classes["Holder"].methods["method"]):
        piece = module.slice(info.line, info.end_line)
        assert piece.text.startswith(f"def {info.name}(*args, **kwargs):\n    raise SyntaxError(")
        assert piece.position(piece.body[0]) == (info.line, 1)
    assert tree.unreadable == {"mixed.py": "mixed.py:6: invalid syntax"}
    assert SourceTree((tmp_path,), relative_to=tmp_path).module("mixed") is None
