"""Which edits of a scan are made together, and the text that comes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eaglelint.finding import Edit, Finding, Position, Safety

__all__ = ["applicable_edits", "apply_edits"]

_BOM = b"\xef\xbb\xbf"


def applicable_edits(findings: Iterable[Finding], safeties: Sequence[Safety]) -> dict[str, tuple[Edit, ...]]:
    """One edit of each finding, by path, in the order of the text.

    Of several edits of a finding the first permitted one counts. Where two of different findings touch the same
    stretch, the earlier one is made; the later one has to be found anew in the text that comes out.
    """
    chosen: dict[str, list[Edit]] = {}
    for finding in findings:
        edit = next((edit for edit in finding.edits if edit.safety in safeties), None)
        if edit is not None:
            chosen.setdefault(edit.span.path, []).append(edit)
    return {path: _apart(edits) for path, edits in chosen.items()}


def _apart(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.span.start, _end(edit))):
        if not kept or (edit.span.start >= _end(kept[-1]) and edit.span.start > kept[-1].span.start):
            kept.append(edit)
    return tuple(kept)


def apply_edits(text: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with the edits made; everything outside of them stays as it is, byte for byte.

    Args:
        text: UTF-8; a byte order mark counts as no column.
        edits: Of this one text, in order and without overlap.

    Raises:
        ValueError: An edit lies outside of the text, or the text is not UTF-8.
    """
    mark, body = (text[:3], text[3:]) if text.startswith(_BOM) else (b"", text)
    lines = body.decode().split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    decoded = "\n".join(lines)

    def offset(position: Position) -> int:
        inside = 1 <= position.line <= len(lines) and 1 <= position.column <= len(lines[position.line - 1]) + 1
        if not inside:
            raise ValueError(f"line {position.line}, column {position.column} is outside of the text")
        return starts[position.line - 1] + position.column - 1

    pieces, done = [], 0
    for edit in edits:
        start, end = offset(edit.span.start), offset(_end(edit))
        if not done <= start <= end:
            raise ValueError("edits overlap")
        pieces += [decoded[done:start], edit.text]
        done = end
    return mark + "".join((*pieces, decoded[done:])).encode()


def _end(edit: Edit) -> Position:
    return edit.span.end or edit.span.start
