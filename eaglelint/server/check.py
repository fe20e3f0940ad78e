"""The scan of one open document: the pipelines that it belongs to, with every unsaved text in place of its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eaglelint.artifacts.document import Document
from eaglelint.artifacts.json_nodes import Problem
from eaglelint.exceptions import EaglelintError
from eaglelint.finding import Finding
from eaglelint.overlay import overlaid
from eaglelint.project.discovery import display_path
from eaglelint.project.pipelines import touches
from eaglelint.rule import Facts
from eaglelint.session import Inputs, open_session

__all__ = ["Checked", "check_document"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of one document.

    Attributes:
        path: As findings name it.
        findings: Those whose place is in this document.
        syntax: What is not JSON in it; nothing else is known then.
        facts: Of the pipelines whose draft this document is.
        messages: Sentences for the log: files that could not be read, a missing target.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    syntax: tuple[Problem, ...] = ()
    facts: tuple[Facts, ...] = ()
    messages: tuple[str, ...] = ()


def check_document(path: Path, root: Path, unsaved: Mapping[Path, bytes]) -> Checked:
    """Scan as ``eaglelint scan`` does in ``root``, and keep what concerns one document.

    Args:
        path: The document, absolute.
        root: The workspace folder that holds it.
        unsaved: The texts of all open documents.
    """
    shown = display_path(path)
    text = unsaved.get(path)
    if path.suffix == ".json" and text is not None:
        document = Document.parse(shown, text)
        if document.errors:
            return Checked(shown, syntax=document.errors)
    with overlaid(unsaved):
        try:
            session = open_session(Inputs(paths=[path]))
            if not session.settings.settings.pipeline:
                # Without pipelines in the settings, what a draft meets is what lies about in the workspace.
                session = open_session(Inputs(paths=[root]))
                session = replace(session, pipelines=tuple(p for p in session.pipelines if touches([path], p)))
            if not session.pipelines:
                return Checked(shown)
            result = session.scan()
        except EaglelintError as error:
            return Checked(shown, messages=(str(error),))
    return Checked(
        shown,
        findings=tuple(finding for finding in result.findings if _same(finding.span.path, path)),
        facts=tuple(facts for facts in result.facts if facts.draft is not None and _same(facts.draft.path, path)),
        messages=(*result.problems, *result.notes),
    )


def _same(shown: str, path: Path) -> bool:
    return os.path.realpath(shown) == os.path.realpath(path)
