"""From a keystroke to diagnostics, and what the server holds in memory: the language server driven as an editor does.

    python benchmarks/server.py [--edits 200] [--memory-edits 1000] [FILE ...]

Without files it types in the example's config; with files, in each of them, at its end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

EXAMPLE = Path(__file__).parents[1] / "examples/kimi-k2.5"


class Editor(LanguageClient):
    """A client that knows when the diagnostics of a version arrive."""

    def __init__(self) -> None:
        super().__init__("benchmark", "1")
        self.arrived: dict[tuple[str, int | None], asyncio.Event] = {}

    def event(self, uri: str, version: int | None) -> asyncio.Event:
        return self.arrived.setdefault((uri, version), asyncio.Event())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--memory-edits", type=int, default=1000)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    editor = Editor()

    @editor.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _published(params: lsp.PublishDiagnosticsParams) -> None:
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
        await measure(editor, path.absolute(), options.edits, options.memory_edits)
    os._exit(0)


async def measure(editor: Editor, path: Path, edits: int, memory_edits: int) -> None:
    text = path.read_text("utf-8")
    uri = path.as_uri()
    began = time.perf_counter()
    item = lsp.TextDocumentItem(uri=uri, language_id=path.suffix[1:], version=0, text=text)
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    await editor.event(uri, 0).wait()
    print(f"{path.name}: {len(text.splitlines())} lines, opened in {1000 * (time.perf_counter() - began):.0f} ms")
    end = lsp.Position(len(text.split("\n")) - 1, len(text.rpartition("\n")[2]))
    for purpose, count in (("latency", edits), ("memory", memory_edits)):
        times = []
        for number in range(count):
            version = number + 1 if purpose == "latency" else edits + number + 1
            began = time.perf_counter()
            editor.text_document_did_change(
                lsp.DidChangeTextDocumentParams(
                    text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
                    content_changes=[lsp.TextDocumentContentChangePartial(range=lsp.Range(end, end), text=" ")],
                )
            )
            await editor.event(uri, version).wait()
            times.append(1000 * (time.perf_counter() - began))
        times.sort()
        median, late = statistics.median(times), times[int(len(times) * 0.95)]
        print(f"  {count} edits: median {median:.0f} ms, p95 {late:.0f} ms; server {memory(editor)} MB")


def memory(editor: Editor) -> int:
    """The resident memory of the server's process, in MB (Linux)."""
    process = editor._server
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1000


if __name__ == "__main__":
    asyncio.run(main())
