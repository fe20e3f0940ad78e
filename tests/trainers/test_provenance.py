"""Which stack wrote a config: certain by what it declares, likely by its keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.trainers.provenance import contradiction, origin_of


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
