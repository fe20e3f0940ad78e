"""Generated examples are the same on every run, so that a test fails for a change and not by chance; each test has a
cache of its own.

``pytest --hypothesis-profile=hunt`` tries others, and more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.page_projects")

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("hunt", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test uses, or leaves anything in, the cache of whoever runs it."""
    directory = tmp_path_factory.mktemp("cache", numbered=True)
    monkeypatch.setenv("EAGLELINT_CACHE_DIR", str(directory))
    return directory
