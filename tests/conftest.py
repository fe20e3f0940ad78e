"""Generated examples are the same on every run, so that a test fails for a change and not by chance.

``pytest --hypothesis-profile=hunt`` tries others, and more of them.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("hunt", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("fixed")
