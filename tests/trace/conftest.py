"""Small projects to trace in, and the places that a value reaches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eaglelint.trace import Trace, trace

Tracing = Callable[..., Trace]


@pytest.fixture
def traced(tmp_path: Path) -> Tracing:
    """Writes files, named by keywords or one ``source``, and traces a symbol in them."""

    def run(symbol: str, source: str | dict[str, str], **options: str) -> Trace:
        files = {"program.py": source} if isinstance(source, str) else source
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return trace(symbol, [tmp_path], relative_to=tmp_path, **options)

    return run


def reached(found: Trace, line: int, name: str) -> set[tuple[int, str]]:
    """Lines and names that the value at a place flows to, over any number of steps."""
    start = next(i for i, item in enumerate(found.occurrences) if (item.line, item.name) == (line, name))
    seen: set[int] = set()
    pending = [start]
    while pending:
        for flow in found.occurrences[pending.pop()].flows:
            if flow.to not in seen:
                seen.add(flow.to)
                pending.append(flow.to)
    return {(found.occurrences[i].line, found.occurrences[i].name) for i in seen}
