"""``eaglelint lsp``: the language server, on standard input and output."""

from __future__ import annotations

__all__ = ["lsp"]


def lsp() -> None:
    """Serve an editor: diagnostics, quick fixes, hints and hovers. Needs the extra: pip install 'eaglelint[lsp]'."""
    from importlib.util import find_spec

    from eaglelint.exceptions import WrongUsage

    if find_spec("pygls") is None:
        raise WrongUsage("The language server needs pygls, which is not installed. Run pip install 'eaglelint[lsp]'.")
    from eaglelint.server.server import serve

    serve()
