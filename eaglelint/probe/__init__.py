"""Findings tried out with real tensors. Torch is imported here and nowhere else, and comes with the extra ``probe``."""

from __future__ import annotations

from importlib.util import find_spec

from eaglelint.exceptions import WrongUsage

__all__ = ["require"]


def require(*modules: str) -> None:
    """Say what to install where a probe cannot run.

    Raises:
        WrongUsage: One of these modules is not installed.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise WrongUsage(
            f"The probe runs real tensors and needs {' and '.join(missing)}, not installed here: "
            "pip install 'eaglelint[probe]'."
        )
