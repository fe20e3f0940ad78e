"""Servers, scans and a scan that is killed share one cache: each gives its answer, and a damaged cache is made anew."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

REPOSITORY = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "eaglelint"]


class Editor(LanguageClient):
    """A client that keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.shown: asyncio.Queue[tuple[int | None, list[str]]] = asyncio.Queue()

    async def until(self, version: int, wanted: list[str]) -> None:
        """Wait for these codes in a version of the document; those before may be of a check that is not done."""
        while await asyncio.wait_for(self.shown.get(), 120) != (version, wanted):
            pass


async def begin(root: Path) -> Editor:
    editor = Editor()

    @editor.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _published(params: lsp.PublishDiagnosticsParams) -> None:
        editor.shown.put_nowait((params.version, [str(row.code) for row in params.diagnostics]))

    await editor.start_io(*COMMAND, "lsp", cwd=str(root))
    folder = lsp.WorkspaceFolder(uri=root.as_uri(), name=root.name)
    await editor.initialize_async(
        lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), workspace_folders=[folder])
    )
    editor.initialized(lsp.InitializedParams())
    return editor


async def end(editor: Editor) -> None:
    await editor.shutdown_async(None)
    editor.exit(None)
    await editor.stop()


async def typed(editor: Editor, config: Path) -> None:
    """The fault, its repair, and the fault again, each answered as it is."""
    uri, text = config.as_uri(), config.read_text("utf-8")
    item = lsp.TextDocumentItem(uri=uri, language_id="json", version=0, text=text)
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    await editor.until(0, ["CAP002"])
    for version, (now, codes) in enumerate([(text.replace("[-1, 2, 30]", "[2, 30, 58]"), []), (text, ["CAP002"])], 1):
        editor.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
                content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=now)],
            )
        )
        await editor.until(version, codes)


async def scanned(root: Path, *, kill: bool = False) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "scan", "--output-format", "json", cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    if kill:
        cache = Path(os.environ["EAGLELINT_CACHE_DIR"]) / "cache.sqlite"
        while process.returncode is None and not cache.exists():  # in the middle of its work, if the others left it any
            await asyncio.sleep(0.005)
        process.kill()
        await process.communicate()
        return []
    output, _ = await process.communicate()
    return [finding["code"] for finding in json.loads(output)["findings"]]


@pytest.mark.asyncio
async def test_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    """Two servers, two scans and one that is killed; then again on a cache that was overwritten under the servers."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    root = Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "kimi"))
    config = root / "draft/config.json"
    editors = await asyncio.gather(begin(root), begin(root))
    try:
        _, *found = await asyncio.gather(
            scanned(root, kill=True), scanned(root), scanned(root), *(typed(editor, config) for editor in editors)
        )
        assert found[:2] == [["CAP002"], ["CAP002"]]
        cache = own_cache / "cache.sqlite"
        assert cache.is_file()
        for file in own_cache.glob("cache.sqlite*"):
            file.write_bytes(b"nothing of use" * 500)
        assert await scanned(root) == ["CAP002"]
        for editor in editors:
            uri, text = config.as_uri(), config.read_text("utf-8").replace("[-1, 2, 30]", "[2, 30, 58]")
            editor.text_document_did_change(
                lsp.DidChangeTextDocumentParams(
                    text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=9),
                    content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
                )
            )
            await editor.until(9, [])
        assert await scanned(root) == ["CAP002"]
        assert cache.read_bytes()[:15] == b"SQLite format 3"
    finally:
        await asyncio.gather(*(end(editor) for editor in editors))
