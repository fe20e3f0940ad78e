"""From a keystroke to diagnostics, and what the server holds in memory: the language server driven as an editor does.

    python benchmarks/server.py [--edits 200] [--memory-edits 1000] [--settled 10] [FILE ...]

Without files it types in the example's config. In JSON every edit changes a digit of some number; in Python it types at
the ends of lines all over the file, now a blank, now a line, now a comment. The first diagnostics for a version may be
those known before, moved along; ``--settled`` edits, in the end, wait until what is shown has been checked anew.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

EXAMPLE = Path(__file__).parents[1] / "examples/kimi-k2.5"


class Editor(LanguageClient):
    """A client that knows when diagnostics for a version arrive."""

    def __init__(self) -> None:
        super().__init__("benchmark", "1")
        self.first: dict[tuple[str, int | None], asyncio.Event] = {}
        self.latest: dict[str, tuple[float, int]] = {}

    def event(self, uri: str, version: int | None) -> asyncio.Event:
        return self.first.setdefault((uri, version), asyncio.Event())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--memory-edits", type=int, default=1000)
    parser.add_argument("--settled", type=int, default=10)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    editor = Editor()

    @editor.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _published(params: lsp.PublishDiagnosticsParams) -> None:
        editor.latest[params.uri] = time.perf_counter(), len(params.diagnostics)
        editor.event(params.uri, params.version).set()

    await editor.start_io(sys.executable, "-m", "eaglelint", "lsp")
    root = EXAMPLE if not options.files else Path.cwd()
    await editor.initialize_async(
        lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(),
            workspace_folders=[lsp.WorkspaceFolder(uri=root.absolute().as_uri(), name=root.name)],
        )
    )
    editor.initialized(lsp.InitializedParams())
    for path in options.files or [EXAMPLE / "draft/config.json"]:
        await measure(editor, path.absolute(), options)
    os._exit(0)


async def measure(editor: Editor, path: Path, options: argparse.Namespace) -> None:
    text = path.read_text("utf-8")
    uri = path.as_uri()
    began = time.perf_counter()
    item = lsp.TextDocumentItem(uri=uri, language_id=path.suffix[1:], version=0, text=text)
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    await editor.event(uri, 0).wait()
    opened, marks = editor.latest[uri]
    print(
        f"{path.name}: {len(text.splitlines())} lines, "
        f"{marks} diagnostics {1000 * (opened - began):.0f} ms after opening"
    )
    version = 0
    edits = typing(text, path.suffix)
    for purpose, count in (("", options.edits), ("", options.memory_edits), ("settled", options.settled)):
        times, burnt = [], cpu(editor)
        for _ in range(count):
            version += 1
            began = time.perf_counter()
            editor.text_document_did_change(
                lsp.DidChangeTextDocumentParams(
                    text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
                    content_changes=[next(edits)],
                )
            )
            await editor.event(uri, version).wait()
            if purpose:  # a hover is answered when the newest text has been checked
                here = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(0, 0))
                await editor.text_document_hover_async(here)
            times.append(1000 * ((time.perf_counter() if purpose else editor.latest[uri][0]) - began))
        if times:
            times.sort()
            median, late = statistics.median(times), times[min(int(count * 0.95), count - 1)]
            spent = 1000 * (cpu(editor) - burnt) / count
            print(
                f"  {count} edits{', settled' if purpose else ''}: median {median:.0f} ms, p95 {late:.0f} ms; "
                f"CPU {spent:.0f} ms each; server {memory(editor)} MB",
                flush=True,
            )


def typing(text: str, suffix: str) -> Iterator[lsp.TextDocumentContentChangePartial]:
    """One edit after the other, all over a text."""
    lines = text.split("\n")
    if suffix == ".json":
        numbers = [(n, found) for n, line in enumerate(lines) for found in re.finditer(r"\d(?=\b)", line)]
        digits = [int(found.group()) for _, found in numbers]
        turn = 0
        while True:
            index = turn % len(numbers)
            digits[index] = (digits[index] + 1) % 10
            line, found = numbers[index]
            place = lsp.Range(lsp.Position(line, found.start()), lsp.Position(line, found.end()))
            yield lsp.TextDocumentContentChangePartial(range=place, text=str(digits[index]))
            turn += 1
    line = 0
    while True:
        line = (line + 997) % len(lines)
        what = (" ", "\n", "  # typed")[line % 3]
        end = lsp.Position(line, len(lines[line]))
        yield lsp.TextDocumentContentChangePartial(range=lsp.Range(end, end), text=what)
        lines[line : line + 1] = (lines[line] + what).split("\n")


def memory(editor: Editor) -> int:
    """The memory of the server's processes, in MB, what they share counted once (Linux)."""
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in _pids(editor)]
    return sum(int(rollup.split("\nPss:")[1].split()[0]) for rollup in rollups) // 1000


def cpu(editor: Editor) -> float:
    """The processor time that the server's processes have used, in seconds (Linux)."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in _pids(editor)]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def _pids(editor: Editor) -> list[int]:
    """The server, and the processes in which it checks."""
    process = editor._server
    assert process is not None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [process.pid, *map(int, children)]


if __name__ == "__main__":
    asyncio.run(main())
