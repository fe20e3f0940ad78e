"""Calls that nest deeply below a function that is roomy."""

from __future__ import annotations

import pickle
import sys

import pytest

from eaglelint.recursion import roomy
from eaglelint.survey.work import _help


def nested(depth: int) -> int:
    return 0 if depth == 0 else nested(depth - 1) + 1


@roomy
def again_and_again() -> int:
    return sum(nested(600) for _ in range(400))


@pytest.mark.skipif(sys.platform != "linux" or sys.version_info < (3, 11), reason="frames are kept in another way")
def test_their_memory_is_mapped_once() -> None:
    """Not with each call over an edge of what is mapped: some ten pages are touched, not thousands."""
    resource = pytest.importorskip("resource")
    again_and_again()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert again_and_again() == 240_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 200


def test_a_roomy_function_stays_what_it_is() -> None:
    """By its name, its result and its errors; also where a process of its own finds it by name."""

    def double(number: int, *, by: int = 2) -> int:
        return number * by

    assert roomy(double) is double
    assert (double(3), double(3, by=3), double.__name__) == (6, 9, "double")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        double()  # type: ignore[call-arg]
    assert roomy(len) is len
    assert pickle.loads(pickle.dumps(_help)) is _help
