"""In which order training code joins the token's embedding and the hidden state in the draft that it trains."""

from __future__ import annotations

from pathlib import Path

from eaglelint.cache.units import remember
from eaglelint.survey.facts import Join
from eaglelint.trainers.files import find_files, source_tree

__all__ = ["trained_join"]


def trained_join(paths: tuple[Path, ...], relative_to: Path) -> Join | None:
    """The order in all files at and below the paths; None where none joins the two, or they differ."""
    files = find_files(paths)
    tree = source_tree(paths, files, relative_to)

    def find() -> Join | None:
        from eaglelint.survey.join_order import join_of

        readable = (file for file in files if tree.is_file(file) and b"torch.c" in tree.read(file))
        return join_of(module for file in readable if (module := tree.module_at(file)) is not None)

    parts = ([str(path) for path in (*paths, *files)], str(relative_to))
    return remember("trained join", parts, tree.snapshot, find, display=tree.display)
