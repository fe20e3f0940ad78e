"""eaglelint proves that a speculative-decoding draft model is served the hidden states it was trained on."""

from __future__ import annotations

from pathlib import Path

__all__ = ["__version__"]

__version__ = "0.1.0"

# In an installed wheel rules and schemas lie inside the package. In a checkout and in an editable install they
# lie beside it, at the top level, and join the package from there.
_package = Path(__file__).resolve().parent
if not (_package / "rules").is_dir() and (_package.parent / "rules" / "__init__.py").is_file():
    __path__.append(str(_package.parent))
