"""The released engines that the real tests read, as unpacked package directories and as open sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eaglelint.serving import EngineHandle, open_serving
from tests.real.packages import (
    LMDEPLOY_0_14_0,
    SGLANG_0_5_9,
    SGLANG_0_5_12,
    SGLANG_0_5_23,
    TRANSFORMERS_5_24_0,
    VLLM_0_13_0,
    VLLM_0_19_1,
    VLLM_0_22_1,
    VLLM_0_33_0,
    package_directory,
)

_PACKAGES = {
    (package.name, package.version): package
    for package in (
        SGLANG_0_5_9,
        SGLANG_0_5_12,
        SGLANG_0_5_23,
        VLLM_0_13_0,
        VLLM_0_19_1,
        VLLM_0_22_1,
        VLLM_0_33_0,
        LMDEPLOY_0_14_0,
        TRANSFORMERS_5_24_0,
    )
}


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


@pytest.fixture(scope="session")
def real_engine() -> Callable[[str, str], EngineHandle]:
    """Opens the source of a release, once for all tests of a session."""
    opened: dict[tuple[str, str], EngineHandle] = {}

    def open_engine(name: str, version: str) -> EngineHandle:
        if (name, version) not in opened:
            package = package_directory(_PACKAGES[name, version])
            handle = open_serving(f"{name}@{package.parent}", root=package.parent, display_root=package.parent)
            assert handle.source.version == version
            opened[name, version] = handle
        return opened[name, version]

    return open_engine
