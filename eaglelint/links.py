"""Where the documentation lies on the web: the one place that knows it, the same as ``[project.urls]``."""

from __future__ import annotations

__all__ = ["DOCUMENTATION", "rule_url"]

DOCUMENTATION = "https://eaglelint.readthedocs.io/"


def rule_url(name: str) -> str:
    """The page of a rule, by its name."""
    return f"{DOCUMENTATION}rules/{name}/"
