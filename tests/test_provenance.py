"""Which stack wrote a config: certain by what it declares, likely by its keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.provenance import (
    contradicted_convention,
    contradiction,
    inferred_training,
    origin_of,
    provenance_note,
)


def draft(data: dict[str, Any]) -> DraftConfig:
    return DraftConfig.parse("draft/config.json", json.dumps({"hidden_size": 64, **data}).encode())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"speculators_config": {}, "speculators_version": "0.9.0", "eagle_aux_hidden_state_layer_ids": [2, 16, 29]},
            ("speculators", "0.9.0", "boundary", "certain"),
        ),
        ({"speculators_config": {}}, ("speculators", None, None, "certain")),
        (
            {"speculators_config": {}, "eagle_aux_hidden_state_layer_ids": [2, 16, 29]},
            ("speculators", None, "boundary", "likely"),
        ),
        # 0.4.0 captured behind the layer, and its config has the key too: what was written there is not told.
        (
            {"speculators_config": {}, "speculators_version": "0.4.0", "eagle_aux_hidden_state_layer_ids": [2, 16, 29]},
            ("speculators", "0.4.0", None, "certain"),
        ),
        (
            {"_torchspec_version": "0.1", "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}},
            ("torchspec", "0.1", None, "certain"),
        ),
        (
            {"eagle_config": {"use_last_layernorm": True, "next_layer_regular": True}},
            ("modelopt", None, "layer-output", "likely"),
        ),
        ({"aux_hidden_states_layer_ids": [1, 15, 28]}, ("angelslim", None, "layer-output", "likely")),
        (
            {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}},
            ("specforge", None, "layer-output", "likely"),
        ),
    ],
)
def test_origins(data: dict[str, Any], expected: tuple[str, str | None, str | None, str]) -> None:
    """Stack, release, what its ids mean, and how sure that is."""
    found = origin_of(draft(data))
    assert found is not None
    assert (found.stack, found.release, found.convention, found.confidence) == expected


def test_nothing_tells() -> None:
    """Ids at the top level alone may be anyone's."""
    assert origin_of(draft({"eagle_aux_hidden_state_layer_ids": [2, 16, 29]})) is None


def test_only_a_declaration_contradicts() -> None:
    """Keys that several stacks write do not."""
    declared = draft({"speculators_config": {}, "speculators_version": "0.9.0"})
    assert "speculators 0.9.0 wrote it" in (contradiction(declared, "specforge", "specforge 0.2.0") or "")
    assert contradiction(declared, "speculators", "speculators 0.9.0") is None
    likely = draft({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}})
    assert contradiction(likely, "modelopt", "modelopt 0.47.0") is None


@pytest.mark.parametrize(
    ("data", "slots", "status"),
    [
        (
            {"speculators_config": {}, "speculators_version": "0.9.0", "eagle_aux_hidden_state_layer_ids": [3, 7, 11]},
            "h[3] ⊕ h[7] ⊕ h[11]",
            "exact",
        ),
        (
            {"speculators_config": {}, "eagle_aux_hidden_state_layer_ids": [3, 7, 11]},
            "h[3] ⊕ h[7] ⊕ h[11]",
            "conditional",
        ),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7, 11]}}, "h[4] ⊕ h[8] ⊕ h[12]", "conditional"),
        ({"dflash_config": {"target_layer_ids": [3, 7]}, "num_target_layers": 32}, "h[4] ⊕ h[8]", "conditional"),
        # Either usual list tells by itself, and so does the last boundary.
        ({"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}, "h[2] ⊕ h[16] ⊕ h[29]", "conditional"),
        ({"eagle_aux_hidden_state_layer_ids": [2, 16, 29]}, "h[2] ⊕ h[16] ⊕ h[29]", "conditional"),
        ({"eagle_aux_hidden_state_layer_ids": [4, 20, 32]}, "h[4] ⊕ h[20] ⊕ h[32]", "conditional"),
        # Undecidable; keys against ids; an order that the trainer knows; a state that does not exist.
        ({"eagle_aux_hidden_state_layer_ids": [4, 20, 30]}, None, None),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 16, 29]}}, None, None),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [11, 3, 7]}}, None, None),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7, 32]}}, None, None),
    ],
)
def test_what_a_config_tells_of_its_training(data: dict[str, Any], slots: str | None, status: str | None) -> None:
    """For a target of 32 layers: exact only where the config declares it."""
    found = inferred_training(draft(data), 32)
    assert (None if found is None else str(found), None if found is None else found.status) == (slots, status)


def test_a_note_where_the_writer_is_known_and_its_ids_are_not() -> None:
    """And none where the wiring says it, or nothing does."""
    converted = draft({"_torchspec_version": "0.1", "eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7, 11]}})
    assert "written certainly by torchspec 0.1" in (provenance_note(converted, 32) or "")
    assert provenance_note(draft({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 7, 11]}}), 32) is None
    assert provenance_note(draft({"eagle_aux_hidden_state_layer_ids": [4, 20, 30]}), 32) is None


def test_a_convention_that_the_config_contradicts() -> None:
    """Only where it declares another one."""
    ids = {"eagle_aux_hidden_state_layer_ids": [3, 7, 11]}
    declared = draft({"speculators_config": {}, "speculators_version": "0.9.0", **ids})
    assert "speculators 0.9.0 wrote the config, and counts boundaries" in (
        contradicted_convention(declared, "layer-output", 32) or ""
    )
    assert contradicted_convention(declared, "boundary", 32) is None
    assert contradicted_convention(draft({"eagle_config": ids}), "boundary", 32) is None
