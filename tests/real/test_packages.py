"""The real packages are the pinned releases, as sources alone."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("fixture", "version", "file"),
    [
        ("sglang_059", "0.5.9", "srt/models/deepseek_v2.py"),
        ("sglang_0523", "0.5.23", "srt/models/deepseek_v2.py"),
        ("vllm_033", "0.33.0", "model_executor/models/interfaces.py"),
    ],
)
def test_the_release_is_the_pinned_one(fixture: str, version: str, file: str, request: pytest.FixtureRequest) -> None:
    """Its metadata names the version, the file that holds the wiring is there, and nothing compiled is."""
    package: Path = request.getfixturevalue(fixture)
    (metadata,) = package.parent.glob("*.dist-info/METADATA")
    assert f"\nVersion: {version}\n" in metadata.read_text(encoding="utf-8")
    assert (package / file).is_file()
    assert {path.suffix for path in package.rglob("*") if path.is_file()} == {".py"}
