"""What a trace says: plain, frozen data for reports, editors and other programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Flow", "Kind", "Occurrence", "Trace"]

Kind = Literal["parameter", "assignment", "read", "mutation", "passed", "returned", "deleted", "config-key"]


@dataclass(frozen=True, slots=True)
class Flow:
    """A step of a value to another occurrence.

    Attributes:
        to: The index of that occurrence.
        how: The call, return or other step that leads there, in words; empty within one function.
        certain: False where the receiver of an attribute or method is only guessed by its name.
        decides: The value does not go there itself; it decides what does.
    """

    to: int
    how: str = ""
    certain: bool = True
    decides: bool = False


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place where the value is, or where the name stands.

    Attributes:
        path: Relative to the working directory where it can be.
        line, column: Both 1-based, columns in characters.
        function: The qualified name of the function; None for a module's or class's own statements.
        kind: What happens to the value there.
        guards: The conditions under which it is reached, outermost first, as written.
        name: What the value is called there.
        value: What is known about it, or None.
        may_be_none: The conditions of a path on which it is None there; None where no path is known.
        code: The statement, on one line.
        flows: Where it goes next.
        fallback: For a key, what is taken where it is absent.
    """

    path: str
    line: int
    column: int
    function: str | None
    kind: Kind
    guards: tuple[str, ...]
    name: str
    value: str | None
    code: str
    flows: tuple[Flow, ...] = ()
    may_be_none: tuple[str, ...] | None = None
    fallback: str | None = None

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Trace:
    """The life of one variable.

    Attributes:
        symbol: What was asked for.
        names: What it is called, the name that was asked for first.
        occurrences: In the order of files and lines.
        files: How many files were looked through.
        skipped: Files that could not be read or parsed, with the reason.
        notes: What was not followed, and why.
    """

    symbol: str
    names: tuple[str, ...]
    occurrences: tuple[Occurrence, ...]
    files: int = 0
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """As schemas/trace.schema.json has it."""
        return {
            "schema_version": 1,
            "symbol": self.symbol,
            "occurrences": [_occurrence(item) for item in self.occurrences],
            "skipped": list(self.skipped),
            "notes": list(self.notes),
        }


def _occurrence(item: Occurrence) -> dict[str, Any]:
    document: dict[str, Any] = {
        "path": item.path,
        "line": item.line,
        "column": item.column,
        "function": item.function,
        "kind": item.kind,
        "guards": list(item.guards),
        "name": item.name,
        "value": item.value,
        "flows_to": [flow.to for flow in item.flows],
        "may_be_none": None if item.may_be_none is None else list(item.may_be_none),
        "code": item.code,
        "flows": [
            {"to": flow.to, "how": flow.how, "certain": flow.certain, "decides": flow.decides} for flow in item.flows
        ],
    }
    if item.fallback is not None:
        document["fallback"] = item.fallback
    return document
