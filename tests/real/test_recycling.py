"""Drafts of released engines that hand themselves a state of another form than their target's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eaglelint.recursion import deep_recursion
from eaglelint.serving import EngineHandle
from eaglelint.survey.recycling import unlike_states

pytestmark = pytest.mark.real

# Each returns the state before the norm that its compute_logits applies; DeepSeekMTP returns a pair since vLLM#47448.
RAW = [
    (
        "vllm",
        "0.22.1",
        {
            "DeepSeekMTP": "deepseek_mtp.py:121",
            "Glm4MoeLiteMTP": "glm4_moe_lite_mtp.py:141",
            "Glm4MoeMTP": "glm4_moe_mtp.py:124",
            "GlmOcrMTP": "glm_ocr_mtp.py:99",
            "OpenPanguMTP": "deepseek_mtp.py:121",
        },
    ),
    (
        "vllm",
        "0.33.0",
        {
            "Glm4MoeLiteMTP": "glm4_moe_lite_mtp.py:157",
            "Glm4MoeMTP": "glm4_moe_mtp.py:128",
            "GlmOcrMTP": "glm_ocr_mtp.py:103",
        },
    ),
    ("sglang", "0.5.9", {}),
    ("sglang", "0.5.23", {}),
]


@pytest.mark.parametrize(("engine", "version", "returns"), RAW)
def test_drafts_that_hand_themselves_their_state_before_the_norm(
    engine: str, version: str, returns: dict[str, str], real_engine: Callable[[str, str], EngineHandle]
) -> None:
    """The draft's ``return``; its head norms what it reads, that of the target does not."""
    handle = real_engine(engine, version)
    with deep_recursion():
        found = unlike_states(handle.engine, handle.source)
    assert {case.cls: str(case.returned).rpartition("/")[2] for case in found} == returns
    assert {(case.norms, case.target_norms) for case in found} <= {(1, 0)}
