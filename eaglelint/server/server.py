"""The protocol: what an editor asks, and what it is told. All work is done elsewhere, for the newest text alone."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from eaglelint import __version__
from eaglelint.cache.units import cache_directory, keep_in
from eaglelint.finding import Finding, Position
from eaglelint.overlay import overlaid
from eaglelint.project.discovery import display_path, engine_root_of
from eaglelint.project.ignoring import SettingsEdit, ignoring
from eaglelint.report.excerpt import read_line
from eaglelint.server.check import Checked
from eaglelint.server.convert import actions, diagnostics, fix_all, overlaps, to_range
from eaglelint.server.life import life_of
from eaglelint.server.meaning import ListMeaning, list_meanings
from eaglelint.server.moved import moved
from eaglelint.server.worker import Worker

__all__ = ["serve"]

# What takes longer than a reader would notice is shown as it was known before, and checked meanwhile.
_PATIENCE = 0.02
# A target class of an engine takes seconds: it is not begun for every letter.
_LONG_PAUSE = 0.3
_SUFFIXES = frozenset({".json", ".py", ".toml", ".yaml", ".yml"})


@dataclass(slots=True)
class _State:
    """What is known of each open document, by its URI.

    ``found`` holds the text that was checked last, with what was found in it; it may be older than the document.
    ``pull``, ``refresh`` and ``creates`` say what the client can do: ask for diagnostics, ask again when it is told to,
    make files.
    """

    checked: dict[str, Checked] = field(default_factory=dict)
    found: dict[str, tuple[str, Checked]] = field(default_factory=dict)
    waiting: dict[str, asyncio.Task[Checked | None]] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    pull: bool = False
    refresh: bool = False
    creates: bool = False


class Server(LanguageServer):
    """A language server that checks the documents it is shown."""

    def __init__(self) -> None:
        super().__init__("eaglelint", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
        self.state = _State()
        self.files = Worker()  # a class of an engine, which takes seconds, does not keep the check of a config waiting
        self.engines = Worker()
        self.lives = ThreadPoolExecutor(
            1, thread_name_prefix="life", initializer=keep_in, initargs=(cache_directory(),)
        )

    def columns(self, path: str, position: Position) -> int:
        """The 0-based column in the client's units."""
        before = (self._line(path, position.line) or "")[: position.column - 1]
        extra = position.column - 1 - len(before)
        units: int = self.workspace.position_codec.client_num_units(before)
        return units + max(0, extra)

    def _line(self, path: str, number: int) -> str | None:
        document = self.workspace.text_documents.get(Path(path).absolute().as_uri())
        if document is None:
            return read_line(Path(path), number)
        lines = document.source.split("\n")
        return lines[number - 1] if number <= len(lines) else None

    def root_of(self, path: Path) -> Path:
        """The workspace folder that holds a file; its own directory where none does."""
        folders = [Path(to_fs_path(uri) or "") for uri in self.workspace.folders]
        if not folders and self.workspace.root_path:
            folders = [Path(self.workspace.root_path)]
        inside = [folder for folder in folders if path.is_relative_to(folder)]
        return max(inside, key=lambda folder: len(folder.parts), default=path.parent)

    def texts(self) -> dict[Path, bytes]:
        """All open documents as they are now."""
        return {
            Path(file): document.source.encode("utf-8", "surrogateescape")
            for uri, document in self.workspace.text_documents.items()
            if (file := to_fs_path(uri)) is not None
        }

    async def check(self, uri: str) -> Checked | None:
        """Check the newest text of a document; ``None`` where a newer one came meanwhile, or it is none of ours."""
        name = to_fs_path(uri)
        if name is None or Path(name).suffix not in _SUFFIXES:
            return None
        path = Path(name)
        # One that waits for its turn gives way to the next: of a burst of keystrokes the last is checked.
        long = path.suffix == ".py" and engine_root_of(path) is not None
        if long and uri in self.state.found:
            await asyncio.sleep(_LONG_PAUSE)
        text = self.workspace.get_text_document(uri).source
        asked = path, self.root_of(path), self.texts()
        job = (self.engines if long else self.files).submit(*asked)
        # Also where a newer text has come meanwhile: what is found in this one can be moved along.
        job.add_done_callback(lambda done: self.learn(uri, text, done))
        try:
            checked = await asyncio.wrap_future(job)
        except BrokenExecutor:
            stopped = f"{display_path(path)}: the check was stopped from outside; it begins anew with the next change"
            self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Warning, stopped))
            return None
        if checked.half_typed:
            checked = self.known(uri) or checked
        self.state.checked[uri] = checked
        for message in checked.messages:
            # Each once: the same sentence after every keystroke would drown the others.
            if message not in self.state.told:
                self.state.told.add(message)
                self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Info, message))
        return checked

    def forget(self) -> None:
        """Files have come, gone or changed."""
        self.files.forget()
        self.engines.forget()

    def learn(self, uri: str, text: str, done: Future[Checked]) -> None:
        """Keep what was found in a text; called as soon as it has been found."""
        if done.cancelled() or done.exception() is not None or uri not in self.state.waiting:
            return
        if not done.result().half_typed:
            self.state.found[uri] = text, done.result()

    def known(self, uri: str) -> Checked | None:
        """What was found in an earlier text, where it stands now."""
        document = self.workspace.text_documents.get(uri)
        found = self.state.found.get(uri)
        return moved(found[1], found[0], document.source) if found is not None and document is not None else None

    def begin(self, uri: str) -> asyncio.Task[Checked | None]:
        """Start a check, in place of one that waits for the same document."""
        old = self.state.waiting.get(uri)
        if old is not None and not old.done():
            old.cancel()
        task = asyncio.ensure_future(self.check(uri))
        self.state.waiting[uri] = task
        if not self.state.pull:
            task.add_done_callback(lambda done: self.publish(uri, done))
            asyncio.get_running_loop().call_later(_PATIENCE, self.publish_known, uri, task)
        return task

    def publish_known(self, uri: str, task: asyncio.Task[Checked | None]) -> None:
        """Push what is known while a check takes its time."""
        if not task.done() and self.state.waiting.get(uri) is task:
            self.push(uri, self.known(uri))

    def publish(self, uri: str, done: asyncio.Task[Checked | None]) -> None:
        """Push what a check found, unless a newer one replaced it."""
        if done.cancelled() or self.state.waiting.get(uri) is not done:
            return
        self.push(uri, done.result())

    def push(self, uri: str, checked: Checked | None) -> None:
        """Publish for the newest text of a document."""
        document = self.workspace.text_documents.get(uri)
        if checked is None or document is None:
            return
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(
                uri=uri, version=document.version, diagnostics=diagnostics(checked, self.columns)
            )
        )

    async def current(self, uri: str) -> Checked | None:
        """What is known of the newest text, waited for."""
        while (task := self.state.waiting.get(uri)) is not None:
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if self.state.waiting.get(uri) is task:
                    raise
                continue
            if self.state.waiting.get(uri) is task:
                break
        return self.state.checked.get(uri)

    async def lists(self, uri: str) -> tuple[ListMeaning, ...]:
        """The lists of ids in a document, with what they mean."""
        checked = await self.current(uri)
        return list_meanings(checked.facts) if checked is not None else ()


server = Server()


def serve() -> None:
    """Serve on standard input and output until the client leaves."""
    sys.setswitchinterval(0.001)  # what the thread that checks does must not keep an answer waiting
    try:
        server.start_io()
    finally:
        server.files.stop()
        server.engines.stop()


@server.feature(lsp.INITIALIZE)
def _initialize(ls: Server, params: lsp.InitializeParams) -> None:
    text_document = params.capabilities.text_document
    ls.state.pull = text_document is not None and text_document.diagnostic is not None
    workspace = params.capabilities.workspace
    refresh = workspace.diagnostics if workspace is not None else None
    edits = workspace.workspace_edit if workspace is not None else None
    ls.state.creates = edits is not None and lsp.ResourceOperationKind.Create in (edits.resource_operations or ())
    ls.state.refresh = refresh is not None and bool(refresh.refresh_support)


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
async def _opened(ls: Server, params: lsp.DidOpenTextDocumentParams) -> None:
    ls.begin(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
async def _changed(ls: Server, params: lsp.DidChangeTextDocumentParams) -> None:
    for uri in ls.workspace.text_documents:
        # What one document says, another may be judged by; the one that is typed in comes first.
        if uri == params.text_document.uri or uri in ls.state.checked:
            ls.begin(uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
async def _saved(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    ls.forget()
    for uri in ls.workspace.text_documents:
        ls.begin(uri)


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
async def _files_changed(ls: Server, params: lsp.DidChangeWatchedFilesParams) -> None:
    """Settings, a target or training code changed on disk."""
    ls.forget()
    for uri in ls.workspace.text_documents:
        ls.begin(uri)
    if ls.state.pull and ls.state.refresh:
        ls.workspace_diagnostic_refresh(None)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
async def _closed(ls: Server, params: lsp.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    task = ls.state.waiting.pop(uri, None)
    if task is not None:
        task.cancel()
    ls.state.checked.pop(uri, None)
    ls.state.found.pop(uri, None)
    if not ls.state.pull:
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


@server.feature(
    lsp.TEXT_DOCUMENT_DIAGNOSTIC,
    lsp.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="eaglelint"),
)
async def _pulled(ls: Server, params: lsp.DocumentDiagnosticParams) -> lsp.RelatedFullDocumentDiagnosticReport:
    uri = params.text_document.uri
    task = ls.state.waiting.get(uri)
    if task is not None and ls.state.refresh and uri in ls.state.found:
        await asyncio.wait([task], timeout=_PATIENCE)
        if not task.done():
            task.add_done_callback(lambda done: done.cancelled() or ls.workspace_diagnostic_refresh(None))
            return lsp.RelatedFullDocumentDiagnosticReport(items=diagnostics(ls.known(uri) or Checked(""), ls.columns))
    checked = await ls.current(uri)
    items = diagnostics(checked, ls.columns) if checked is not None else []
    return lsp.RelatedFullDocumentDiagnosticReport(items=items)


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind("source.fixAll")]),
)
async def _actions(ls: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    checked = await ls.current(params.text_document.uri)
    if checked is None:
        return []
    text = ls.workspace.get_text_document(params.text_document.uri).source
    path = Path(to_fs_path(params.text_document.uri) or "")

    def ignored(finding: Finding) -> SettingsEdit | None:
        with overlaid(ls.texts()):
            change = ignoring(finding.code, path, ls.root_of(path))
        return change if change is None or change.before is not None or ls.state.creates else None

    found = list(actions(checked, params.range, text, ls.columns, ignored))
    everything = fix_all(checked, ls.columns)
    found += [everything] if everything is not None else []
    wanted = params.context.only
    return [a for a in found if wanted is None or any(_is_kind(a.kind or "", kind) for kind in wanted)]


def _is_kind(kind: str, wanted: str) -> bool:
    return kind == wanted or kind.startswith(f"{wanted}.")


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
async def _hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover | None:
    here = lsp.Range(params.position, params.position)
    for ids in await ls.lists(params.text_document.uri):
        for meaning in ids.ids:
            place = to_range(meaning.span, ls.columns)
            if overlaps(place, here):
                lines = [f"Layer id {meaning.value}", *meaning.sentences]
                return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.PlainText, "\n".join(lines)), place)
    return None


@server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
async def _references(ls: Server, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """The life of the value under the cursor."""
    uri = params.text_document.uri
    path = Path(to_fs_path(uri) or "")
    checked = ls.state.checked.get(uri)
    text = ls.workspace.get_text_document(uri).source
    line = text.split("\n")[params.position.line : params.position.line + 1]
    place = ls.workspace.position_codec.position_from_client_units(line, lsp.Position(0, params.position.character))
    position = Position(params.position.line + 1, place.character + 1)
    facts = checked.facts if checked is not None else ()
    loop = asyncio.get_running_loop()
    spans = await loop.run_in_executor(ls.lives, life_of, path, text, position, ls.root_of(path), ls.texts(), facts)
    return [lsp.Location(Path(span.path).absolute().as_uri(), to_range(span, ls.columns)) for span in spans]


@server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
async def _hints(ls: Server, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    return [
        lsp.InlayHint(
            position=place.end,
            label=meaning.label,
            padding_left=True,
            tooltip="\n".join(meaning.sentences),
        )
        for ids in await ls.lists(params.text_document.uri)
        for meaning in ids.ids
        if meaning.label and overlaps(place := to_range(meaning.span, ls.columns), params.range)
    ]


@server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
async def _lenses(ls: Server, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    return [
        lsp.CodeLens(to_range(ids.key_span, ls.columns), command=lsp.Command(title=ids.summary, command=""))
        for ids in await ls.lists(params.text_document.uri)
    ]
