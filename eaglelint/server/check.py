"""The scan of one open document: the pipelines that it belongs to, with every unsaved text in place of its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from eaglelint.artifacts.document import Document
from eaglelint.artifacts.json_nodes import Problem
from eaglelint.exceptions import EaglelintError
from eaglelint.finding import Finding
from eaglelint.overlay import overlaid
from eaglelint.project.discovery import display_path, engine_root_of
from eaglelint.project.pipelines import touches
from eaglelint.rule import Facts
from eaglelint.scan import ScanResult
from eaglelint.session import Inputs, Session, open_session
from eaglelint.sharing import OpenSources, sharing_sources
from eaglelint.source.index import index_source

__all__ = ["Checked", "Kept", "check_document"]


@dataclass(slots=True)
class Kept:
    """What one check leaves to the next.

    Attributes:
        sources: Engines' sources, which say themselves whether they still hold.
        layouts: What lies in each workspace folder; taken away when files come or go.
        look: How often files had come or gone when the layouts were made.
    """

    sources: OpenSources = field(default_factory=lambda: OpenSources(lasting=True))
    layouts: dict[Path, Session] = field(default_factory=dict)
    look: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of one document.

    Attributes:
        path: As findings name it.
        findings: Those whose place is in this document.
        syntax: What is not JSON in it; nothing else is known then.
        half_typed: It is no Python at the moment: what is known of an earlier text says more.
        facts: Of the pipelines whose draft this document is.
        messages: Sentences for the log: files that could not be read, a missing target.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    syntax: tuple[Problem, ...] = ()
    half_typed: bool = False
    facts: tuple[Facts, ...] = ()
    messages: tuple[str, ...] = ()


def check_document(path: Path, root: Path, unsaved: Mapping[Path, bytes], kept: Kept | None = None) -> Checked:
    """Scan as ``eaglelint scan`` does in ``root``, and keep what concerns one document.

    Args:
        path: The document, absolute.
        root: The workspace folder that holds it.
        unsaved: The texts of all open documents.
        kept: What earlier checks of this process have left.
    """
    kept = kept or Kept()
    shown = display_path(path)
    text = unsaved.get(path)
    if path.suffix == ".json" and text is not None:
        document = Document.parse(shown, text)
        if document.errors:
            return Checked(shown, syntax=document.errors)
    if path.suffix == ".py" and text is not None and not _is_python(text):
        return Checked(shown, half_typed=True)
    with overlaid(unsaved), sharing_sources(kept.sources):
        try:
            result = _scan(path, root, kept)
        except EaglelintError as error:
            return Checked(shown, messages=(str(error),))
    return Checked(
        shown,
        findings=tuple(finding for finding in result.findings if _same(finding.span.path, path)),
        facts=tuple(facts for facts in result.facts if facts.draft is not None and _same(facts.draft.path, path)),
        messages=(*result.problems, *result.notes),
    )


def _scan(path: Path, root: Path, kept: Kept) -> ScanResult:
    session = open_session(Inputs(paths=[path]))
    engine = engine_root_of(path) if path.suffix == ".py" else None
    if not session.settings.settings.pipeline:
        # Without pipelines in the settings, what a draft meets is what lies about in the workspace. A look through an
        # engine's tree takes longer than a keystroke, and typing in it brings no draft.
        layout = kept.layouts.get(root) if engine is not None else None
        if layout is None:
            layout = kept.layouts[root] = open_session(Inputs(paths=[root]))
        session = replace(layout, pipelines=tuple(p for p in layout.pipelines if touches([path], p)))
    if session.pipelines:
        return session.scan()
    return ScanResult() if engine is None else session.scan_engine_file(engine, path)


def _is_python(text: bytes) -> bool:
    try:
        index_source(text)
    except SyntaxError:
        return False
    return True


def _same(shown: str, path: Path) -> bool:
    return os.path.realpath(shown) == os.path.realpath(path)
