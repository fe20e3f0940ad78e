"""Which files define a name, and which classes name another as a base: from the headers alone, without parsing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Headers", "headers_in"]

# Each begins with a literal: so they are fast, and what they find too much is looked at again in the outline.
_FUNCTION = re.compile(rb"def[ \t]+(\w+)")
_CLASS = re.compile(rb"class[ \t]+(\w+)(?:[ \t]*\(([^)]*)\))?")
_WORD = re.compile(rb"\w+")


@dataclass(frozen=True, slots=True)
class Headers:
    """What looks like the header of a function or class; some stand in strings.

    Attributes:
        files: For each name the files that may define a function or class of it.
        below: For each name the classes, by file and name, that may have it as a base.
    """

    files: Mapping[str, list[str]]
    below: Mapping[str, list[tuple[str, str]]]


def headers_in(sources: Mapping[str, bytes]) -> Headers:
    """The headers in the files, each under its path."""
    files: defaultdict[bytes, list[str]] = defaultdict(list)
    below: defaultdict[bytes, dict[tuple[str, str], None]] = defaultdict(dict)
    for file, source in sources.items():
        classes = _CLASS.findall(source)
        for name in {*_FUNCTION.findall(source), *(name for name, _ in classes)}:
            files[name].append(file)
        for name, bases in classes:
            for base in _WORD.findall(bases):
                below[base][file, name.decode()] = None
    return Headers(
        {name.decode(): found for name, found in files.items()},
        {name.decode(): list(found) for name, found in below.items()},
    )
