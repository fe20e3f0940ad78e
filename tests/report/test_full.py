"""The format for a person says what, where, why and how to mend it, and survives whatever a file holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eaglelint.finding import Edit, Finding, Position, Span
from eaglelint.links import rule_url
from eaglelint.report.full import render_full

Printed = Callable[..., str]

# Colours, and links around text.
ESCAPES = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\")

EXPECTED = """\
error[CAP002] boundary-mismatch: slot 1 was trained on h[3] and is served h[0] (the embedding)
  --> draft/config.json:3:41
   |     "eagle_aux_hidden_state_layer_ids": [-1, 2, 30]
   |                                         ^^ h[0] in sglang 0.5.9 (DeepseekV2ForCausalLM)
  trained: training/dump_hidden_states.py:41  captures before layer 3, 31, 59  ->  h[3] ⊕ h[31] ⊕ h[59]
  served:  sglang/srt/models/deepseek_v2.py:2721  ->  h[0] ⊕ h[3] ⊕ h[31]
  help: SGLang adds 1 to each id of this class.
  fix: [2, 30, 58] (safe)

Found 1 error (1 with a safe edit)
"""


def test_a_finding_in_full(mismatch: Finding, project: Path, listed: Printed) -> None:
    """Into a pipe goes plain text, its lines left whole."""
    assert listed(render_full, [mismatch], root=project) == EXPECTED


def test_a_terminal_gets_colour_and_the_same_words(mismatch: Finding, project: Path, listed: Printed) -> None:
    """On a wide terminal only escape sequences are added."""
    shown = listed(render_full, [mismatch], root=project, width=120)
    assert "\x1b[1;31merror[CAP002]\x1b[0m" in shown
    assert re.sub(ESCAPES, "", shown) == EXPECTED


def test_the_code_is_a_link_to_the_page(mismatch: Finding, project: Path, listed: Printed) -> None:
    """Terminals that know hyperlinks open the rule's page from it; a pipe gets none."""
    shown = listed(render_full, [mismatch], root=project, width=120)
    assert re.search(rf"\x1b\]8;[^;]*;{re.escape(rule_url('boundary-mismatch'))}\x1b\\", shown)
    assert "\x1b" not in listed(render_full, [mismatch], root=project)


def test_no_color(mismatch: Finding, project: Path, listed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR takes the colour from a terminal."""
    monkeypatch.setenv("NO_COLOR", "1")
    shown = listed(render_full, [mismatch], root=project, width=120)
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown)


def test_a_narrow_terminal_is_never_overrun(mismatch: Finding, project: Path, listed: Printed) -> None:
    """At 60 columns the excerpt is cut, the annotation moves below, and the rest is wrapped."""
    shown = re.sub(ESCAPES, "", listed(render_full, [mismatch], root=project, width=60))
    assert max(map(len, shown.splitlines())) <= 60
    assert '   |     "eagle_aux_hidden_state_layer_ids": [-1, 2, 30]\n' in shown
    assert "   |            h[0] in sglang 0.5.9 (DeepseekV2ForCausalLM)\n" in shown


def test_a_missing_file(mismatch: Finding, tmp_path: Path, listed: Printed) -> None:
    """Without its file a finding keeps the annotation and loses the excerpt."""
    shown = listed(render_full, [replace(mismatch, related=(), help=None, edits=())], root=tmp_path)
    assert shown == (
        "error[CAP002] boundary-mismatch: slot 1 was trained on h[3] and is served h[0] (the embedding)\n"
        "  --> draft/config.json:3:41\n"
        "   | h[0] in sglang 0.5.9 (DeepseekV2ForCausalLM)\n"
        "\n"
        "Found 1 error\n"
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"\0" * 64, b"\n\n" + b"\0" * 64 + b"\n", b"\x40" + b"\0" * 7 + b'{"fc.weight": {}}'],
    ids=["empty", "too short", "zeros", "zeros on the line", "checkpoint"],
)
def test_a_line_that_cannot_be_shown(mismatch: Finding, project: Path, listed: Printed, content: bytes) -> None:
    """A line that is not there, or is not text, is not shown."""
    (project / "draft/config.json").write_bytes(content)
    assert "   | h[0] in sglang 0.5.9" in listed(render_full, [mismatch], root=project)


def under_the_caret(shown: str) -> str:
    """The text that the underline stands below, where all characters are one cell wide."""
    lines = shown.splitlines()
    row = next(index for index, line in enumerate(lines) if set(line.removeprefix("   |").strip()) == {"^"})
    return lines[row - 1][lines[row].index("^") : lines[row].rindex("^") + 1]


@pytest.mark.parametrize(
    ("line", "text", "excerpt"),
    [
        ('\t"ids":\t[1]', "[1]", '   |     "ids":    [1]\n   |               ^^^'),
        ('  "名前": [1]', "[1]", '   |   "名前": [1]\n   |           ^^^'),
        ('  "ids": "層"', '"層"', '   |   "ids": "層"\n   |          ^^^^'),
        ('  "e\u0301": [1]', "[1]", '   |   "e\u0301": [1]\n   |        ^^^'),
        ('\ufeff{"ids": [1]}', "[1]", '   | {"ids": [1]}\n   |         ^^^'),
    ],
    ids=["tabs", "wide before", "wide below", "combining", "byte order mark"],
)
def test_the_underline_stands_below_its_text(
    mismatch: Finding, project: Path, listed: Printed, line: str, text: str, excerpt: str
) -> None:
    """Columns count characters; tabs and wide characters take more than one cell."""
    (project / "draft/config.json").write_text(line + "\r\n", encoding="utf-8")
    column = line.removeprefix("\ufeff").index(text) + 1
    span = Span("draft/config.json", Position(1, column), Position(1, column + len(text)))
    shown = listed(render_full, [replace(mismatch, span=span, annotation="")], root=project)
    assert f"{excerpt}\n" in shown


def test_a_minified_file_is_cut_around_the_span(mismatch: Finding, project: Path, listed: Printed) -> None:
    """A line of 200,000 characters shows the part that matters."""
    line = "[" + "0, " * 40_000 + "-1, " + "0, " * 40_000 + "0]"
    (project / "draft/config.json").write_text(line, encoding="utf-8")
    column = line.index("-1") + 1
    span = Span("draft/config.json", Position(1, column), Position(1, column + 2))
    shown = listed(render_full, [replace(mismatch, span=span, annotation="", related=())], root=project)
    assert under_the_caret(shown) == "-1"
    assert max(map(len, shown.splitlines())) <= 120
    assert shown.count("⋯") == 2


def test_a_span_past_the_end_of_its_line(mismatch: Finding, project: Path, listed: Printed) -> None:
    """A file that changed underfoot gives a caret at the end of the line."""
    span = Span.at("draft/config.json", 1, 99)
    shown = listed(render_full, [replace(mismatch, span=span, annotation="")], root=project)
    assert "   | {\n   |  ^\n" in shown


def test_scanned_text_cannot_steer_the_terminal(mismatch: Finding, project: Path, listed: Printed) -> None:
    """Escape sequences, markup and bidirectional marks of a scanned file are shown, not obeyed."""
    (project / "draft/config.json").write_text('"\x1b[2J\u202e": [1]\n', encoding="utf-8")
    hostile = replace(
        mismatch, span=Span.at("draft/config.json", 1, 8), message="unknown key '\x1b[2J\n[red]'", annotation="\ud800"
    )
    shown = listed(render_full, [hostile], root=project)
    assert "\x1b" not in shown
    assert "unknown key '�[2J [red]'\n" in shown
    assert '   | "�[2J�": [1]' in shown
    assert "^ �\n" in shown


def test_an_edit_that_does_not_read_well_is_described(mismatch: Finding, project: Path, listed: Printed) -> None:
    """A removal, and a text of many lines, show what the edit does instead."""
    edits = (
        Edit("unsafe", mismatch.span, "", "remove the key"),
        Edit("display", mismatch.span, "a\nb", "rewrite the loop"),
    )
    shown = listed(render_full, [replace(mismatch, edits=edits)], root=project)
    assert "  fix: remove the key (unsafe)\n  fix: rewrite the loop (to be done by hand)\n" in shown


def test_help_of_many_lines_keeps_its_lines(mismatch: Finding, project: Path, listed: Printed) -> None:
    """Lines after the first stand below it."""
    shown = listed(render_full, [replace(mismatch, help="one\ntwo")], root=project)
    assert "  help: one\n        two\n" in shown


def test_nothing_found(listed: Printed) -> None:
    """Silence would leave open whether anything was checked."""
    assert listed(render_full, []) == "Found no problems\n"
