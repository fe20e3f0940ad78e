"""JUnit XML, which most CI systems show as tests: a suite for each file, a failed case for each finding."""

from __future__ import annotations

from typing import TextIO
from xml.etree import ElementTree as ET

from eaglelint.finding import Finding
from eaglelint.links import rule_url
from eaglelint.report.formats import Report
from eaglelint.report.printable import one_line

__all__ = ["render"]


def render(report: Report, stream: TextIO) -> None:
    """Write the document; a scan that found nothing is one test that passed, one that stopped is an error."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_path.setdefault(finding.span.path, []).append(finding)
    cases = len(report.findings) + len(report.problems) or 1
    counts = {"tests": cases, "failures": len(report.findings), "errors": len(report.problems)}
    root = ET.Element("testsuites", {"name": "eaglelint", **{key: str(value) for key, value in counts.items()}})
    for path, findings in by_path.items():
        suite = _suite(root, path, tests=len(findings), failures=len(findings))
        for finding in findings:
            _case(suite, finding)
    if report.problems:
        suite = _suite(root, "eaglelint", tests=len(report.problems), errors=len(report.problems))
        for problem in report.problems:
            case = ET.SubElement(suite, "testcase", {"name": "readable", "classname": "eaglelint"})
            ET.SubElement(case, "error", {"message": one_line(problem), "type": "unreadable"})
    if not len(root):
        ET.SubElement(_suite(root, "eaglelint", tests=1), "testcase", {"name": "scan", "classname": "eaglelint"})
    ET.indent(root)
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n")


def _suite(root: ET.Element, name: str, *, tests: int, failures: int = 0, errors: int = 0) -> ET.Element:
    counts = {"tests": tests, "failures": failures, "errors": errors}
    return ET.SubElement(root, "testsuite", {"name": one_line(name), **{k: str(v) for k, v in counts.items()}})


def _case(suite: ET.Element, finding: Finding) -> None:
    place = f"{finding.span.start.line}:{finding.span.start.column}"
    path = one_line(finding.span.path)
    name = f"{finding.code} {finding.name} at {place}"
    case = ET.SubElement(suite, "testcase", {"name": name, "classname": path, "file": path})
    case.set("line", str(finding.span.start.line))
    failure = ET.SubElement(case, "failure", {"message": one_line(finding.message), "type": finding.severity})
    lines = [f"{path}:{place}: {finding.severity}[{finding.code}] {one_line(finding.message)}"]
    lines += [
        f"  {one_line(row.label)}: {one_line(row.span.path)}:{row.span.start.line}  {one_line(row.message)}"
        for row in finding.related
    ]
    lines += [f"  help: {one_line(line)}" for line in (finding.help or "").splitlines()]
    lines.append(f"  {rule_url(finding.name)}")
    failure.text = "\n".join(lines)
