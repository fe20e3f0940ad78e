"""The finding of the first page of the documentation, and consoles that stand for a pipe and for a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from eaglelint.finding import Edit, Finding, Position, Related, Span
from eaglelint.report.printer import Printer

CONFIG = '{\n  "eagle_config": {\n    "eagle_aux_hidden_state_layer_ids": [-1, 2, 30]\n  }\n}\n'


@pytest.fixture
def mismatch() -> Finding:
    """A draft trained on h[3], h[31], h[59] and served h[0], h[3], h[31]."""
    ids = Span("draft/config.json", Position(3, 41), Position(3, 43))
    return Finding(
        "CAP002",
        "boundary-mismatch",
        "error",
        "certain",
        "slot 1 was trained on h[3] and is served h[0] (the embedding)",
        ids,
        annotation="h[0] in sglang 0.5.9 (DeepseekV2ForCausalLM)",
        related=(
            Related(
                "trained",
                "captures before layer 3, 31, 59  ->  h[3] ⊕ h[31] ⊕ h[59]",
                Span.at("training/dump_hidden_states.py", 41),
            ),
            Related("served", "->  h[0] ⊕ h[3] ⊕ h[31]", Span.at("sglang/srt/models/deepseek_v2.py", 2721)),
        ),
        help="SGLang adds 1 to each id of this class.",
        edits=(Edit("safe", ids, "[2, 30, 58]", "write the ids as layer outputs"),),
        identity=("eagle_aux_hidden_state_layer_ids", "sglang"),
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the draft's config."""
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft/config.json").write_text(CONFIG, encoding="utf-8")
    return tmp_path


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Calls a renderer on a console without a terminal (or with one, of ``width``) and returns what was printed."""
    for variable in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)

    def run(render: Callable[..., None], *args: object, width: int | None = None, **options: object) -> str:
        file = io.StringIO()
        if width is None:
            console = Console(file=file, width=80)
        else:
            console = Console(file=file, width=width, force_terminal=True, color_system="truecolor")
        render(*args, console=console, **options)
        return file.getvalue()

    return run


@pytest.fixture
def listed(printed: Callable[..., str]) -> Callable[..., str]:
    """As ``printed``, for a renderer that takes a printer: a pipe has no console."""

    def run(render: Callable[..., None], *args: object, **options: object) -> str:
        def through(*args: object, console: Console, **options: object) -> None:
            printer = Printer(console.file, console if console.is_terminal else None)
            render(*args, printer=printer, **options)

        return printed(through, *args, **options)

    return run
