"""What SGLang copies from a target's text_config when it reads the config, in the forms that releases have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eaglelint.engines.base import config_object
from eaglelint.engines.sglang_config import find_reader, read_config
from eaglelint.serving import open_source
from eaglelint.source.machine import Machine

# SGLang 0.5.5, srt/utils/hf_transformers_utils.py:242; 0.5.9, :349; 0.5.12, srt/utils/hf_transformers/config.py:95.
OVER_DICT = """\
def get_config(model, trust_remote_code, revision=None):
    config = AutoConfig.from_pretrained(model, revision=revision)
    text_config = get_hf_text_config(config=config)
    if isinstance(model, str) and text_config is not None:
        for key, val in text_config.__dict__.items():
            if not hasattr(config, key) and getattr(text_config, key, None) is not None:
                setattr(config, key, val)
    return config
"""
OVER_ITEMS = """\
class HFParser:
    def parse(self, model, trust_remote_code, revision=None):
        with lock:
            config = AutoConfig.from_pretrained(model, revision=revision)
        text_config = get_hf_text_config(config=config)
        if isinstance(model, str) and text_config is not None:
            items = text_config.items() if hasattr(text_config, "items") else vars(text_config).items()
            for key, val in items:
                if not hasattr(config, key) and val is not None:
                    setattr(config, key, val)
        return config


def get_config(model, trust_remote_code, revision=None):
    return HFParser().parse(model, trust_remote_code, revision)
"""
WITHOUT = """\
def get_config(model, trust_remote_code, revision=None):
    return AutoConfig.from_pretrained(model, revision=revision)
"""
TEXT = {"hidden_size": 64, "num_hidden_layers": 8, "vocab_size": 128, "rope_theta": 10000.0, "head_dim": None}


@pytest.mark.parametrize(
    ("reader", "copied"),
    [
        (OVER_DICT, {"num_hidden_layers": 8, "vocab_size": 128}),
        (OVER_ITEMS, {"num_hidden_layers": 8, "vocab_size": 128}),
        (WITHOUT, {}),
    ],
)
def test_sizes_of_the_language_model_stand_at_the_top(tmp_path: Path, reader: str, copied: dict[str, Any]) -> None:
    """Not what is None there, not what the top has already, and no key for which the config's class may have its own."""
    utils = tmp_path / "sglang" / "srt" / "utils"
    utils.mkdir(parents=True)
    (tmp_path / "sglang" / "version.py").write_text('__version__ = "0.5.9"\n')
    (tmp_path / "sglang" / "srt" / "models").mkdir()
    (utils / "hf_transformers_utils.py").write_text(reader)
    source = open_source(f"sglang@{tmp_path / 'sglang'}", root=tmp_path).source
    machine = Machine(source.tree)
    find_reader(machine, source)
    target = config_object(machine, {"hidden_size": 32, "text_config": dict(TEXT)})
    before = dict(target.attrs)
    read_config(machine, target)
    assert {key: value for key, value in target.attrs.items() if key not in before} == copied
    assert target.attrs["hidden_size"] == 32
