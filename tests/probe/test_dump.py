"""The dump probe on tiny targets: each slot of each trainer's layout is named, and every usual mistake in it too."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch

from eaglelint.finding import Finding, Span
from eaglelint.probe.dump.layouts import recognise
from eaglelint.probe.dump.match import MARGIN, families, identify
from eaglelint.probe.dump.observe import Observed, observe
from eaglelint.probe.dump.target import TargetStates, recompute
from eaglelint.probe.dump.verdict import dump_verdict
from eaglelint.rule import Facts
from tests.probe.tiny import LAYERS, LAYOUTS, MODELS, States, dumped, states_of, tiny, tokens_of
from tests.rules.facts import eagle3

each_model = pytest.mark.parametrize("model", MODELS)
each_layout = pytest.mark.parametrize("layout", LAYOUTS)

Slots = Sequence[torch.Tensor]

# What lies in the slots, as a trainer meant to take h[2], h[4] and h[5] would dump it, and how it is to be named.
CASES: dict[str, tuple[Callable[[States], Slots], str]] = {
    "right": (lambda s: [s.stream[k] for k in (2, 4, 5)], "h[2] ⊕ h[4] ⊕ h[5]"),
    "off by one": (lambda s: [s.stream[k] for k in (3, 5, 6)], "h[3] ⊕ h[5] ⊕ h[6]"),
    "reordered": (lambda s: [s.stream[k] for k in (5, 2, 4)], "h[5] ⊕ h[2] ⊕ h[4]"),
    "normed": (lambda s: [s.normed[k] for k in (2, 4, 5)], "norm(h[2]) ⊕ norm(h[4]) ⊕ norm(h[5])"),
    "the last one normed": (
        lambda s: [s.stream[2], s.stream[4], s.normed[LAYERS]], f"h[2] ⊕ h[4] ⊕ norm(h[{LAYERS}])",
    ),
    "residual left out": (lambda s: [s.branch[k] for k in (2, 4, 5)], "partial(h[2]) ⊕ partial(h[4]) ⊕ partial(h[5])"),
    "branch left out": (
        lambda s: [s.stream[k] - s.branch[k] for k in (2, 4, 5)], "partial(h[2]) ⊕ partial(h[4]) ⊕ partial(h[5])",
    ),
    "the embedding": (lambda s: [s.stream[k] for k in (0, 2, 4)], "h[0] ⊕ h[2] ⊕ h[4]"),
    "the last layer's output": (lambda s: [s.stream[k] for k in (2, 4, LAYERS)], f"h[2] ⊕ h[4] ⊕ h[{LAYERS}]"),
}  # fmt: skip


def seen(model: str, layout: str, slots: Slots, *, ids: Sequence[int] | None = None, label: str = "norm") -> Observed:
    """Dump, take apart, identify."""
    states = states_of(model)
    last = {"norm": states.normed[LAYERS], "stream": states.stream[LAYERS]}[label]
    sample = dumped(layout, slots, last, tokens_of(model) if ids is None else ids, normed=label == "norm")
    dump = recognise(sample, "dump", width=64, most_tokens=128)
    return observe(dump, lambda tokens: recomputed(model, tuple(tokens)), first_token=1)


@cache
def recomputed(model: str, ids: tuple[int, ...]) -> TargetStates:
    """As the probe does it; kept, as many dumps are of the same tokens."""
    return recompute(tiny(model), ids)


@each_model
def test_boundaries_are_what_transformers_gives(model: str) -> None:
    """h[0..N-1] and norm(h[N]) are its hidden states, also where its own last one is normed."""
    mine, theirs = recompute(tiny(model), tokens_of(model)), states_of(model)
    assert torch.equal(mine.stream, torch.stack(list(theirs.stream)))
    assert torch.equal(mine.normed[-1], theirs.normed[-1])
    assert mine.branch is not None
    torch.testing.assert_close(mine.branch, torch.stack(list(theirs.branch))[1:], atol=1e-5, rtol=1e-4)


@each_model
@each_layout
@pytest.mark.parametrize("case", CASES)
def test_each_slot_is_named(case: str, layout: str, model: str) -> None:
    """With a margin over 0.05 in every slot; the ids fit as they are."""
    make, expected = CASES[case]
    observed = seen(model, layout, make(states_of(model)))
    assert str(observed.wiring) == expected
    assert observed.wiring.status == "exact"
    assert observed.shift == 0
    assert not observed.interleaved
    assert min(match.margin for match in observed.slots) > MARGIN
    forms = {"residual left out": "branch", "branch left out": "residual"}
    assert case not in forms or {match.best.form for match in observed.slots} == {forms[case]}


@each_model
@each_layout
@pytest.mark.parametrize("shift", [1, -1, -2])
def test_the_shift_of_the_ids_is_named(shift: int, layout: str, model: str) -> None:
    """Ids moved to the left, as trainers pad them, or to the right; the slots are still named."""
    ids = tokens_of(model)
    moved = [*ids[shift:], *[0] * shift] if shift > 0 else [*[0] * -shift, *ids[:shift]]
    observed = seen(model, layout, [states_of(model).stream[k] for k in (2, 4, 5)], ids=moved)
    assert observed.shift == shift
    assert str(observed.wiring) == "h[2] ⊕ h[4] ⊕ h[5]"


@each_model
def test_ids_that_lost_more_than_the_first_token(model: str) -> None:
    """What the lost tokens added is not known: the shift is named, and no slot is named wrongly."""
    observed = seen(model, "specforge", CASES["right"][0](states_of(model)), ids=[*tokens_of(model)[2:], 0, 0])
    assert observed.shift == 2
    assert {str(slot) for slot in observed.wiring.slots} <= {"h[2]", "h[4]", "h[5]", "?"}


@each_model
@pytest.mark.parametrize("layout", ["specforge", "speculators", "speculators-list", "modelopt", "torchspec"])
@pytest.mark.parametrize(("label", "expected"), [("norm", f"norm(h[{LAYERS}])"), ("stream", f"h[{LAYERS}]")])
def test_the_label_is_named(label: str, expected: str, layout: str, model: str) -> None:
    """Normed or not, wherever the layout keeps it."""
    observed = seen(model, layout, CASES["right"][0](states_of(model)), label=label)
    assert observed.label is not None
    assert str(observed.label.slot) == expected
    assert str(observed.wiring) == CASES["right"][1]


@each_model
def test_states_flattened_feature_by_feature_are_named(model: str) -> None:
    """[T, H, L] flattened where [T, L, H] was meant has the same size."""
    states = torch.stack([states_of(model).stream[k] for k in (2, 4, 5)], dim=-1).flatten(1)
    sample = {"input_ids": torch.tensor(tokens_of(model)), "aux_hidden_states": states}
    dump = recognise(sample, "dump", width=64, most_tokens=128)
    observed = observe(dump, lambda tokens: recompute(tiny(model), tokens))
    assert observed.interleaved
    assert str(observed.wiring) == "h[2] ⊕ h[4] ⊕ h[5]"


@each_model
def test_what_is_no_state_of_the_target_is_not_named(model: str) -> None:
    """Noise, another model's states, and the middle between two states: no guess that looks exact."""
    states = states_of(model)
    other = states_of(MODELS[(MODELS.index(model) + 1) % len(MODELS)])
    noise = torch.randn(states.stream[3].shape, generator=torch.Generator().manual_seed(0)) * states.stream[3].std()
    for slot in (noise, other.stream[3], (states.stream[3] + states.stream[4]) / 2):
        observed = seen(model, "specforge", [states.stream[2], slot, states.stream[5]])
        assert str(observed.wiring) == "h[2] ⊕ ? ⊕ h[5]"
        assert observed.wiring.status == "conditional"


def test_two_states_that_are_the_same_are_ambiguous() -> None:
    """A layer that adds nothing: its input and output cannot be told apart, and both are named."""
    from dataclasses import replace

    target = recompute(tiny("llama"), tokens_of("llama"))
    stream = target.stream.clone()
    stream[4] = stream[3]
    match = identify(stream[3], families(replace(target, stream=stream)))
    assert not match.sure
    assert {str(match.best), str(match.next)} == {"h[3]", "h[4]"}
    assert str(match).startswith("ambiguous: h[")


@each_model
def test_a_prefix_of_a_sample_is_enough(model: str) -> None:
    """States of the first tokens do not depend on what follows."""
    sample = dumped("specforge", CASES["right"][0](states_of(model)), states_of(model).normed[8], tokens_of(model))
    dump = recognise(sample, "dump", width=64, most_tokens=10)
    assert len(dump.ids) == 10
    assert str(observe(dump, lambda tokens: recompute(tiny(model), tokens)).wiring) == "h[2] ⊕ h[4] ⊕ h[5]"


@each_model
def test_activations_that_drown_the_rest_do_not_hide_a_state(model: str) -> None:
    """A first token of forty times the length and features a hundred times as large, computed in another type."""
    exact = copy.deepcopy(tiny(model))
    with torch.no_grad():
        exact.model.embed_tokens.weight[:, 5] += 3.0
        exact.model.embed_tokens.weight[1] *= 40
        exact.model.layers[0].self_attn.o_proj.weight[7] *= 100
    theirs = recompute(exact, tokens_of(model))
    among = families(recompute(exact.bfloat16(), tokens_of(model)))
    for boundary in (0, 1, 2, 5, LAYERS):
        match = identify(theirs.stream[boundary].bfloat16().float(), among)
        assert (str(match.slot), match.sure) == (f"h[{boundary}]", True), str(match)


def test_what_a_dump_says_of_findings_on_training_code() -> None:
    """Ids that are shifted in the dump bear out the rules on alignment and on dumps; a sound dump says nothing of them."""
    facts = Facts(eagle3([1, 3, 4]), None, None, ())
    finding = Finding("TRN001", "misaligned-tokens", "error", "likely", "ids are moved", Span.at("train.py", 3))
    right = CASES["right"][0](states_of("llama"))
    ids = [*tokens_of("llama")[1:], 0]
    verdict = dump_verdict(finding, seen("llama", "specforge", right, ids=ids), facts)
    assert verdict is not None
    assert verdict.verdict == "confirmed"
    assert "the ids are shifted to the left by 1 token" in verdict.detail
    assert dump_verdict(finding, seen("llama", "specforge", right), facts) is None


def test_a_branch_in_a_dump_confirms_a_capture_of_it() -> None:
    """VAL001 says that an engine captures the branch without the residual: so the dump that it wrote shows."""
    facts = Facts(eagle3([1, 3, 4]), None, None, ())
    finding = Finding("VAL001", "branch-without-residual", "error", "certain", "a branch", Span.at("model.py", 3))
    for case, expected in (("residual left out", "confirmed"), ("right", None)):
        verdict = dump_verdict(finding, seen("llama", "specforge", CASES[case][0](states_of("llama"))), facts)
        assert (verdict.verdict if verdict else None) == expected
