"""``eaglelint trace``: where a value comes from, what it is called on the way, and where it goes.

A library for the command line and for editors: :func:`trace` returns plain data.
"""

from __future__ import annotations

from eaglelint.trace.model import Flow, Occurrence, Trace
from eaglelint.trace.tracer import trace

__all__ = ["Flow", "Occurrence", "Trace", "trace"]
