"""Objects that hand themselves to something else, which may set attributes that their own classes do not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from eaglelint.source.values import ClassValue

__all__ = ["is_handed_out"]

# quant_method.create_weights(self, ...) sets the weight of a layer. A ``def`` takes self.
_HANDED = re.compile(r"(?:\b(def\s+)?([\w.]*)\(\s*|,\s*)(?:\w+\s*=\s*)?self\s*[,)]")
_SUPER = re.compile(r"\bsuper\(\s*\w+\s*$")
_LOOKING = frozenset(
    ["delattr", "getattr", "hasattr", "id", "isinstance", "len", "repr", "setattr", "str", "super", "type"]
)
_BEFORE = 80  # characters: enough for ``super(CLASS``


def is_handed_out(mro: Iterable[ClassValue | str]) -> bool:
    """Whether the code of one of these classes hands ``self`` to more than what looks at it: told by the text."""
    classes = (entry for entry in mro if isinstance(entry, ClassValue))
    return any(_hands_out(cls.module.text(cls.info.line, cls.info.end_line)) for cls in classes)


@lru_cache(maxsize=1024)
def _hands_out(text: str) -> bool:
    return any(map(_may_set, _HANDED.finditer(text)))


def _may_set(handed: re.Match[str]) -> bool:
    defined, called = handed[1], handed[2]
    if called is None:  # not the first argument
        return _SUPER.search(handed.string, max(0, handed.start() - _BEFORE), handed.start()) is None
    return not (defined or called in _LOOKING or called.endswith("__init__"))
