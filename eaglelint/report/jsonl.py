"""One finding a line, each the object that the JSON document holds, for tools that read a stream."""

from __future__ import annotations

import json
from typing import TextIO

from eaglelint.report.formats import Report
from eaglelint.report.json import finding_json

__all__ = ["render"]


def render(report: Report, stream: TextIO) -> None:
    """Write the findings; without any, nothing."""
    for finding in report.findings:
        stream.write(json.dumps(finding_json(finding)) + "\n")
