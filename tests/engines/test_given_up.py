"""States that come out of code that is not followed: one certain state each, and never taken for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.mini import BEFORE, Model, derive

KERNEL = "import kernels\n"
LAYER = "hidden_states, residual = kernels.fused_layer(hidden_states, residual)\nreturn hidden_states, residual"
ONE = """
hidden_states = self.embed_tokens(input_ids)
aux = []
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append({})
    hidden_states = layer(hidden_states, None)
return self.norm(hidden_states), aux
"""
ONE_LAYER = "return kernels.fused_layer(hidden_states, self.layer_id)"
# A helper with more unknown conditions than anybody wants to try out.
CONDITIONS = "\n".join(
    f"    if kernels.has_{i}(x):\n        parts.append({i})\n        size = size + {i}" for i in range(14)
)
ATTEND = f"def attend(x, *rest):\n    parts, size = [], 0\n{CONDITIONS}\n    return kernels.run(x, parts, size)\n"


def test_what_a_kernel_makes_of_the_stream_is_the_stream(tmp_path: Path) -> None:
    """h[k] is what layer k is handed, whatever computed it."""
    wiring = derive(tmp_path, Model(top=KERNEL, loop=ONE.format("hidden_states"), layer=ONE_LAYER))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")


def test_each_layer_makes_a_state_of_its_own(tmp_path: Path) -> None:
    """The state that was kept before layer 1 is none of those that came later, though the same kernel made them."""
    loop = ONE.format("kept").replace(
        "    hidden_states = layer", "    kept = hidden_states if i == 1 else kept\n    hidden_states = layer"
    )
    wiring = derive(
        tmp_path, Model(top=KERNEL, loop=loop.replace("aux = []", "aux = []\nkept = hidden_states"), layer=ONE_LAYER)
    )
    assert (wiring.status, str(wiring)) == ("exact", "h[1] ⊕ h[1] ⊕ h[1]")


def test_a_kernel_whose_result_nobody_uses_writes_over_its_arguments(tmp_path: Path) -> None:
    """``kernels.scale_(hidden_states)`` before the capture's copy and after it."""
    loop = ONE.format("hidden_states").replace(
        "    hidden_states = layer", "    kernels.scale(hidden_states)\n    hidden_states = layer"
    )
    model = Model(
        top=KERNEL, loop=loop.replace("append(hidden_states)", "append(hidden_states.clone())"), layer=ONE_LAYER
    )
    assert derive(tmp_path, model).status == "unknown"
    assert str(derive(tmp_path / "alias", Model(top=KERNEL, loop=loop, layer=ONE_LAYER))) == "h[2] ⊕ h[6] ⊕ h[9]"


@pytest.mark.parametrize(
    "value",
    [
        "kernels.fused_layer(hidden_states, 0)",
        "hidden_states * 0.5",
        "hidden_states.abs()",
        "kernels.pair(hidden_states)[0]",
    ],
)
def test_what_a_kernel_makes_beside_the_stream_is_not_the_stream(tmp_path: Path, value: str) -> None:
    """A state that no layer is handed stays open."""
    wiring = derive(tmp_path, Model(top=KERNEL, loop=ONE.format(value), layer=ONE_LAYER))
    assert wiring.status == "unknown", wiring


def test_one_of_two_results_is_not_the_stream(tmp_path: Path) -> None:
    """A kernel's two results together are what the next layer is handed; either alone is no h[k]."""
    both = derive(tmp_path / "both", Model(top=KERNEL, loop=BEFORE, layer=LAYER))
    assert (both.status, str(both)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")
    for name in ("hidden_states", "residual"):
        loop = BEFORE.replace("hidden_states + residual if residual is not None else hidden_states", name)
        assert derive(tmp_path / name, Model(top=KERNEL, loop=loop, layer=LAYER)).status == "unknown"


def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """Fourteen unknown conditions inside a layer, none of them about what is captured."""
    layer = "return hidden_states + attend(hidden_states, residual), None"
    loop = ONE.format("hidden_states").replace("hidden_states = layer(", "hidden_states, _ = layer(")
    wiring = derive(tmp_path, Model(top=KERNEL + ATTEND, loop=loop, layer=layer))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")


def test_a_list_in_a_call_that_is_given_up_may_hold_more(tmp_path: Path) -> None:
    """The helper could have added to the captures."""
    layer = "return hidden_states + attend(hidden_states, residual), None"
    loop = ONE.format("hidden_states").replace(
        "hidden_states = layer(hidden_states, None)", "hidden_states, _ = layer(hidden_states, aux)"
    )
    wiring = derive(tmp_path, Model(top=KERNEL + ATTEND, loop=loop, layer=layer))
    assert wiring.status == "unknown"
    assert "attend may have added to it" in (wiring.reason or "")


def test_a_call_that_is_given_up_may_have_written_over_its_arguments(tmp_path: Path) -> None:
    """The captured state went through the helper; it is the state that the layer is handed then, not the one before."""
    loop = ONE.format("before").replace(
        "    if i in", "    before = hidden_states\n    attend(hidden_states)\n    if i in"
    )
    wiring = derive(tmp_path, Model(top=KERNEL + ATTEND, loop=loop, layer=ONE_LAYER))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")
    copied = loop.replace("before = hidden_states", "before = hidden_states.clone()")
    wiring = derive(tmp_path / "copy", Model(top=KERNEL + ATTEND, loop=copied, layer=ONE_LAYER))
    assert wiring.status == "unknown", wiring
