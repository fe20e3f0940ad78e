"""Models by their id on the Hugging Face Hub: from the local cache or, when asked, config and headers from there.

The cache is laid out as huggingface_hub does: ``models--ORG--NAME/refs/main`` names the commit below ``snapshots``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from eaglelint.exceptions import WrongUsage

__all__ = ["hub_cache", "located", "why_not_here"]

_ID = re.compile(r"(?P<org>[A-Za-z0-9][\w.-]*)/(?P<name>[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")


def located(path: Path, *, online: bool = False) -> Path:
    """Where a model that was named lies: the path itself where something is there, or where it is no model's id.

    Args:
        path: As it was named, not joined to anything: ``moonshotai/Kimi-K2.5``, also with ``@REVISION``.
        online: Whether to fetch config and headers where the local cache has no such model.

    Raises:
        UnreadableInput: The Hub does not have it, or cannot be reached.
        WrongUsage: The extra ``hub`` is not installed.
    """
    found = _ID.fullmatch(path.as_posix())
    if found is None or path.exists():
        return path
    snapshot = _in_cache(found["org"], found["name"], found["revision"] or "main")
    if snapshot is not None:
        return snapshot
    if not online:
        return path
    try:
        from eaglelint.hub_fetch import fetch
    except ImportError:
        raise WrongUsage("--online needs an extra. Install it: pip install 'eaglelint[hub]'.") from None
    return fetch(f"{found['org']}/{found['name']}", found["revision"] or "main")


def why_not_here(display: str) -> str | None:
    """How to proceed where a model's id names nothing on this machine; ``None`` where it does not look like one."""
    found = _ID.fullmatch(display.removesuffix("/config.json"))
    if found is None or display.lower().endswith((".json", ".toml", ".yaml", ".py")):
        return None
    return (
        f"{display} does not exist, and the local Hugging Face cache ({hub_cache()}) has no model of that name. Pass "
        f"--online to fetch its config and headers, or run: hf download {found['org']}/{found['name']} "
        "--include '*.json'. Or name a directory."
    )


def hub_cache() -> Path:
    """The directory of the local cache, as huggingface_hub finds it."""
    for variable, below in (("HF_HUB_CACHE", "."), ("HUGGINGFACE_HUB_CACHE", "."), ("HF_HOME", "hub")):
        if os.environ.get(variable):
            return Path(os.path.expandvars(os.environ[variable])).expanduser() / below
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface" / "hub"


def _in_cache(org: str, name: str, revision: str) -> Path | None:
    """The snapshot of a revision that holds a config."""
    home = hub_cache() / f"models--{org}--{name}"
    try:
        ref = home / "refs" / revision
        commit = ref.read_text("ascii").strip() if ref.is_file() else revision
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    if not re.fullmatch(r"[\w.-]+", commit) or set(commit) == {"."}:
        return None
    snapshot = home / "snapshots" / commit
    return snapshot if (snapshot / "config.json").is_file() else None
