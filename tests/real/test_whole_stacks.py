"""The rules on training code over whole released stacks: what they find there, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eaglelint.project.pipelines import PipelineInput
from eaglelint.registry import all_rules
from eaglelint.scan import Options, scan_pipelines
from tests.real import packages
from tools.trainer_tables import Sources

pytestmark = pytest.mark.real

DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]},
}
TARGET = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "vocab_size": 128256,
}
# Where a stack trains with its own code as it was released, a finding is taken for a false one until it is read.
STACKS = [
    ("specforge", packages.SPECFORGE_0_2_0),
    ("speculators", packages.SPECULATORS_0_9_0),
    ("eagle", packages.EAGLE),
    ("dflash", packages.DFLASH),
    ("torchspec", packages.TORCHSPEC),
]


@pytest.mark.parametrize(("name", "pin"), STACKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_released_stack(name: str, pin: packages.Package | packages.Checkout, tmp_path: Path) -> None:
    """As ``eaglelint scan --draft --target --training STACK`` for a draft with the usual ids."""
    handle = Sources().stack(name, pin)
    if handle is None:
        pytest.skip(f"{pin} cannot be had here")
    for directory, data in (("draft", DRAFT), ("target", TARGET)):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "config.json").write_text(json.dumps(data))
    pipeline = PipelineInput(name, tmp_path / "draft", tmp_path / "target", training=(handle.source.package,))
    result = scan_pipelines([pipeline], all_rules(), Options())
    assert [(f.code, f.severity, f"{Path(f.span.path).name}:{f.span.start.line}") for f in result.findings] == []
