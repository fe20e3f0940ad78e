"""A real editor: headless Neovim opens a faulty config, shows the fault and the life of its ids, and none when it is mended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("neovim.lua")


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed (Debian: apt install neovim)")
def test_neovim_shows_the_fault(tmp_path: Path) -> None:
    """With its own client, as a user has it; the buffer is never saved."""
    example = Path(shutil.copytree(REPOSITORY / "examples/kimi-k2.5", tmp_path / "kimi"))
    config = example / "draft/config.json"
    before = config.read_bytes()
    out = tmp_path / "out.json"
    environment = os.environ | {
        "EAGLELINT_OUT": str(out),
        "EAGLELINT_COMMAND": json.dumps([sys.executable, "-m", "eaglelint", "lsp"]),
        "PYTHONPATH": str(REPOSITORY),
    }
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-c", f"luafile {SCRIPT}", str(config)]
    subprocess.run(command, cwd=example, env=environment, timeout=150, check=True, capture_output=True)
    told = json.loads(out.read_text("utf-8"))
    assert [(row["code"], row["lnum"], row["source"]) for row in told["faulty"]] == [("CAP002", 4, "eaglelint")]
    assert "\ntrace: eaglelint trace eagle_aux_hidden_state_layer_ids " in told["faulty"][0]["message"]
    runner = example / "serving/sglang/srt/model_executor/model_runner.py"
    readers = enumerate(runner.read_text("utf-8").splitlines())
    assert {row["range"]["start"]["line"] for row in told["life"] if row["uri"] == runner.as_uri()} >= {
        number for number, line in readers if "eagle_aux_hidden_state_layer_ids" in line.split("#")[0]
    }
    assert told["mended"] == []
    assert config.read_bytes() == before
