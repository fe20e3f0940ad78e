"""The server, driven over the protocol by a real client: what an editor shows and offers."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient

from eaglelint.session import Inputs, open_session

REPOSITORY = Path(__file__).parents[2]
SERVER = [sys.executable, "-m", "eaglelint", "lsp"]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "kimi"))


async def begin(client: LanguageClient, root: Path, *, pull: bool, encoding: str) -> None:
    diagnostic = lsp.DiagnosticClientCapabilities() if pull else None
    await client.initialize_session(
        lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(
                text_document=lsp.TextDocumentClientCapabilities(diagnostic=diagnostic),
                general=lsp.GeneralClientCapabilities(position_encodings=[lsp.PositionEncodingKind(encoding)]),
            ),
            workspace_folders=[lsp.WorkspaceFolder(uri=root.as_uri(), name="kimi")],
        )
    )


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER, server_env=None))
async def client(lsp_client: LanguageClient, example: Path) -> AsyncIterator[None]:
    """An editor that waits for what is pushed, and counts in UTF-16 as the protocol does by default."""
    await begin(lsp_client, example, pull=False, encoding="utf-16")
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER, server_env=None))
async def pulling(lsp_client: LanguageClient, example: Path) -> AsyncIterator[None]:
    """An editor that asks, and counts in bytes of UTF-8."""
    await begin(lsp_client, example, pull=True, encoding="utf-8")
    yield
    await lsp_client.shutdown_session()


def opened(client: LanguageClient, path: Path, text: str | None = None) -> str:
    uri = path.as_uri()
    text = path.read_text("utf-8") if text is None else text
    item = lsp.TextDocumentItem(uri=uri, language_id=path.suffix[1:], version=1, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    return uri


def changed(client: LanguageClient, uri: str, version: int, text: str) -> None:
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
            content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
        )
    )


async def shown(
    client: LanguageClient, uri: str, expected: Callable[[list[lsp.Diagnostic]], bool] = bool
) -> list[lsp.Diagnostic]:
    """What is pushed for a document, waited for until it is as expected: some mark, if not said otherwise."""

    async def wait() -> list[lsp.Diagnostic]:
        while uri not in client.diagnostics or not expected(list(client.diagnostics[uri])):
            await asyncio.sleep(0.02)
        return list(client.diagnostics[uri])

    return await asyncio.wait_for(wait(), 60)


def nothing(found: list[lsp.Diagnostic]) -> bool:
    return not found


def place(text: str, word: str, codec: str = "utf-16-le", unit: int = 2) -> tuple[int, int]:
    """Line and column of a word, in units of an encoding."""
    before = text[: text.index(word)]
    line = before.rpartition("\n")[2]
    return before.count("\n"), len(line.encode(codec)) // unit


@pytest.mark.asyncio
async def test_a_fault_appears_and_goes(client: LanguageClient, example: Path) -> None:
    """The faulty config is underlined as it is opened; with the right ids typed, not yet saved, the mark is gone."""
    config = example / "draft/config.json"
    text = config.read_text("utf-8")
    uri = opened(client, config)
    (found,) = await shown(client, uri)
    line, column = place(text, "-1, 2, 30")
    assert (found.code, found.source, found.severity) == ("CAP002", "eaglelint", lsp.DiagnosticSeverity.Error)
    assert (found.range.start.line, found.range.start.character) == (line, column)
    related = [(Path(row.location.uri).name, row.message.split(":")[0]) for row in found.related_information or ()]
    assert ("dump_hidden_states.py", "trained") in related
    assert ("deepseek_v2.py", "served") in related
    changed(client, uri, 2, text.replace("[-1, 2, 30]", "[2, 30, 58]"))
    await shown(client, uri, nothing)


@pytest.mark.asyncio
async def test_half_typed(client: LanguageClient, example: Path) -> None:
    """A text that is no JSON yet is marked where it breaks; what it turns into is checked as ever."""
    config = example / "draft/config.json"
    text = config.read_text("utf-8")
    uri = opened(client, config, text.replace("[-1, 2, 30]", "[-1, 2, "))
    assert all(row.message.startswith("not valid JSON: ") for row in await shown(client, uri))
    changed(client, uri, 2, text)
    await shown(client, uri, lambda found: [row.code for row in found] == ["CAP002"])


@pytest.mark.asyncio
async def test_training_code_counts_while_it_is_typed(client: LanguageClient, example: Path) -> None:
    """Both files are open; a change of the one moves the mark in the other."""
    uri = opened(client, example / "draft/config.json")
    await shown(client, uri)
    script = example / "training/dump_hidden_states.py"
    other = opened(client, script)
    await shown(client, other, nothing)
    changed(client, other, 2, script.read_text("utf-8").replace("3, 31, 59", "2, 31, 59"))
    await shown(client, uri, lambda found: "slot 0 was trained on h[2] and is served h[0]" in found[0].message)


@pytest.mark.asyncio
async def test_an_engine_s_own_file(client: LanguageClient, example: Path) -> None:
    """A file of an engine's tree shows what a scan of the tree finds in it; typing moves the marks and mends them."""
    tree = Path(shutil.copytree(REPOSITORY / "tests/rules/projects/sound-sglang", example.parent / "engine"))
    file = tree / "sglang/srt/models/llama.py"
    text = file.read_text("utf-8")
    faulty = text.replace("append(stream(hidden_states, residual))", "append(hidden_states)")
    file.write_text(faulty, "utf-8")
    scanned = open_session(Inputs(paths=[tree], cache=False)).scan().findings
    expected = [(finding.code, finding.message, finding.span.start.line - 1) for finding in scanned]
    uri = opened(client, file)
    found = await shown(client, uri)
    assert [(row.code, row.message.split("\n")[0], row.range.start.line) for row in found] == expected
    assert [code for code, _, _ in expected] == ["VAL001", "VAL001"]
    changed(client, uri, 2, f"# a line more\n{faulty}\ndef half(")
    lines = [line + 1 for _, _, line in expected]
    await shown(client, uri, lambda found: [row.range.start.line for row in found] == lines)
    changed(client, uri, 3, text)
    await shown(client, uri, nothing)


@pytest.mark.asyncio
async def test_columns_are_in_the_units_that_were_agreed(pulling: LanguageClient, example: Path) -> None:
    """Asked for, in bytes, behind characters of several bytes."""
    config = example / "draft/config.json"
    text = config.read_text("utf-8").replace('"eagle_config": {', '"eagle_config": {"ä🦅": 1,', 1)
    text = text.replace('"ä🦅": 1,\n    ', '"ä🦅": 1, ')
    uri = opened(pulling, config, text)
    report = await pulling.text_document_diagnostic_async(
        lsp.DocumentDiagnosticParams(text_document=lsp.TextDocumentIdentifier(uri=uri))
    )
    assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
    (found,) = report.items
    assert (found.range.start.line, found.range.start.character) == place(text, "-1, 2, 30", "utf-8", 1)


@pytest.mark.asyncio
async def test_what_is_offered(client: LanguageClient, example: Path) -> None:
    """A quick fix with the right ids, and all safe edits at once; applied, they give the repaired file."""
    config = example / "draft/config.json"
    text = config.read_text("utf-8")
    uri = opened(client, config)
    (found,) = await shown(client, uri)

    async def offered(only: list[Any] | None = None) -> list[lsp.CodeAction]:
        result = await client.text_document_code_action_async(
            lsp.CodeActionParams(
                text_document=lsp.TextDocumentIdentifier(uri=uri),
                range=lsp.Range(found.range.start, found.range.start),
                context=lsp.CodeActionContext(diagnostics=[found], only=only),
            )
        )
        return [action for action in result or () if isinstance(action, lsp.CodeAction)]

    fix, ignore, everything = await offered()
    assert (ignore.title, ignore.is_preferred) == ("Ignore CAP002 in this file (eaglelint.toml)", None)
    assert ignore.edit is not None and ignore.edit.changes is not None
    (settings,) = ignore.edit.changes[(example / "eaglelint.toml").as_uri()]
    assert settings.new_text.endswith('[per-file-ignores]\n"draft/config.json" = ["CAP002"]\n')
    assert (fix.title, fix.is_preferred, everything.kind) == ("Write [2, 30, 58]", True, "source.fixAll")
    for action in (fix, everything):
        assert action.edit is not None and action.edit.changes is not None
        (edit,) = action.edit.changes[uri]
        lines = text.split("\n")
        line = lines[edit.range.start.line]
        line = line[: edit.range.start.character] + edit.new_text + line[edit.range.end.character :]
        lines[edit.range.start.line] = line
        assert "\n".join(lines) == text.replace("[-1, 2, 30]", "[2, 30, 58]")
    assert [action.kind for action in await offered([lsp.CodeActionKind("source.fixAll")])] == ["source.fixAll"]


@pytest.mark.asyncio
async def test_what_the_ids_mean(client: LanguageClient, example: Path) -> None:
    """A hint behind each id, a sentence over it, and both ends above the list."""
    config = example / "draft/config.json"
    text = config.read_text("utf-8")
    uri = opened(client, config)
    await shown(client, uri)
    document = lsp.TextDocumentIdentifier(uri=uri)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(text_document=document, range=whole))
    line, column = place(text, "-1, 2, 30")
    assert [(hint.position.line, hint.position.character, hint.label) for hint in hints or ()] == [
        (line, column + 2, "h[0]"),
        (line, column + 5, "h[3]"),
        (line, column + 9, "h[31]"),
    ]
    hover = await client.text_document_hover_async(
        lsp.HoverParams(text_document=document, position=lsp.Position(line, column + 8))
    )
    assert hover is not None and isinstance(hover.contents, lsp.MarkupContent)
    assert hover.contents.value == "Layer id 30\nsglang 0.5.9+kimi serves h[31] for it"
    lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(text_document=document))
    assert [lens.command.title for lens in lenses or () if lens.command] == [
        "trained on h[3] ⊕ h[31] ⊕ h[59] · served h[0] ⊕ h[3] ⊕ h[31] by sglang 0.5.9+kimi"
    ]


@pytest.mark.asyncio
async def test_the_life_of_a_value(client: LanguageClient, example: Path) -> None:
    """References of a config's key lead through the engine; those of a variable stay in its function, and follow it."""

    async def places(path: Path, word: str) -> list[tuple[str, int]]:
        text = path.read_text("utf-8")
        uri = opened(client, path)
        await shown(client, uri, lambda found: True)
        line, column = place(text, word)
        found = await client.text_document_references_async(
            lsp.ReferenceParams(
                context=lsp.ReferenceContext(include_declaration=True),
                text_document=lsp.TextDocumentIdentifier(uri=uri),
                position=lsp.Position(line, column + 1),
            )
        )
        return [(Path(row.uri).name, row.range.start.line + 1) for row in found or ()]

    keys = await places(example / "draft/config.json", "eagle_aux_hidden_state_layer_ids")
    runner = example / "serving/sglang/srt/model_executor/model_runner.py"
    readers = enumerate(runner.read_text("utf-8").splitlines(), 1)
    assert {line for name, line in keys if name == runner.name} >= {
        number for number, line in readers if re.search(r"\beagle_aux_hidden_state_layer_ids\b", line.split("#")[0])
    }
    dump = example / "training/dump_hidden_states.py"
    states = await places(dump, "states = []")
    lines = dump.read_text("utf-8").splitlines()
    mentioned = {number for number, line in enumerate(lines, 1) if re.search(r"\bstates\b", line.split("#")[0])}
    assert {line for name, line in states if name == dump.name} >= mentioned


@pytest.mark.asyncio
async def test_settings_are_read_again(client: LanguageClient, example: Path) -> None:
    """A rule that is ignored in the settings is silent from the next check on."""
    config = example / "draft/config.json"
    uri = opened(client, config)
    await shown(client, uri)
    settings = example / "eaglelint.toml"
    settings.write_text('ignore = ["CAP002"]\n' + settings.read_text("utf-8"), encoding="utf-8")
    event = lsp.FileEvent(uri=settings.as_uri(), type=lsp.FileChangeType.Changed)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes=[event]))
    await shown(client, uri, nothing)


@pytest.mark.asyncio
async def test_a_closed_document_is_cleared(client: LanguageClient, example: Path) -> None:
    """Its marks go with it."""
    uri = opened(client, example / "draft/config.json")
    await shown(client, uri)
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=uri)))
    await shown(client, uri, nothing)
