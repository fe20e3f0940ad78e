"""The released engines that the real tests read, as unpacked package directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.packages import SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_33_0, package_directory


@pytest.fixture(scope="session")
def sglang_059() -> Path:
    """SGLang 0.5.9, ``.../sglang``."""
    return package_directory(SGLANG_0_5_9)


@pytest.fixture(scope="session")
def sglang_0523() -> Path:
    """SGLang 0.5.23, ``.../sglang``."""
    return package_directory(SGLANG_0_5_23)


@pytest.fixture(scope="session")
def vllm_033() -> Path:
    """vLLM 0.33.0, ``.../vllm``."""
    return package_directory(VLLM_0_33_0)
