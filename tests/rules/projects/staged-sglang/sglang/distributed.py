"""The stages of a pipeline, each with some of the layers."""

_PP = None


def get_pp_group():
    assert _PP is not None
    return _PP


def start(group):
    global _PP  # noqa: PLW0603
    _PP = group
