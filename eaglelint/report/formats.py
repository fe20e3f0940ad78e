"""What a scan prints, and the one door to the formats: each module of this package has ``render(report, stream)``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TextIO

from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.finding import Finding
from eaglelint.report.summary import Summary
from eaglelint.suppress import Suppressed
from eaglelint.wiring import Wiring

__all__ = ["Format", "Output", "Report", "parse_outputs", "write_file"]


class Format(str, Enum):
    """How findings are written."""

    full = "full"
    concise = "concise"
    json = "json"
    jsonl = "jsonl"
    sarif = "sarif"
    github = "github"
    gitlab = "gitlab"
    junit = "junit"
    lsp = "lsp"


@dataclass(frozen=True, slots=True)
class Report:
    """All that a format may show.

    Attributes:
        problems: Sentences on named files that could not be read.
        notes: Sentences on what was left out.
        suppressed: Findings that comments or the settings silence.
        version: eaglelint's own.
    """

    findings: tuple[Finding, ...]
    wirings: tuple[Wiring, ...]
    summary: Summary
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    version: str = ""

    def write(self, format: Format, stream: TextIO) -> None:
        """Write the report in one format."""
        import_module(f"eaglelint.report.{format.value}").render(self, stream)


@dataclass(frozen=True, slots=True)
class Output:
    """A format and the file that it goes to; ``None`` is standard output."""

    format: Format
    file: Path | None = None


def parse_outputs(words: list[str], file: Path | None) -> tuple[Output, ...]:
    """The outputs that ``--output-format FORMAT`` or ``FORMAT:FILE``, each any number of times, asks for.

    Args:
        words: As given; ``full`` where there are none.
        file: Where the format without a file of its own goes, in place of standard output.

    Raises:
        WrongUsage: A format is not known, or two share one destination.
    """
    outputs = []
    for word in words or ["full"]:
        name, _, own = word.partition(":")
        if name not in Format.__members__:
            raise WrongUsage(f"There is no format {name}; known are {', '.join(Format.__members__)}.")
        outputs.append(Output(Format(name), Path(own) if own else file))
    for output in outputs:
        if sum(other.file == output.file for other in outputs) > 1:
            place = "standard output" if output.file is None else str(output.file)
            raise WrongUsage(f"Two formats go to {place}. Name a file for one of them: --output-format sarif:FILE.")
    return tuple(outputs)


def write_file(report: Report, output: Output) -> None:
    """Write to the output's file, in UTF-8.

    Raises:
        UnreadableInput: It cannot be written.
    """
    assert output.file is not None
    try:
        with output.file.open("w", encoding="utf-8", newline="\n") as stream:
            report.write(output.format, stream)
    except OSError as error:
        raise UnreadableInput(
            f"{output.file} cannot be written: {error.strerror or error}. Check the path and its permissions."
        ) from None
