from dataclasses import dataclass
from typing import Any


@dataclass
class Captured:
    aux_hidden_states: Any
    last_hidden_states: Any


def replaced_logits_processor_forward_for_offline_eagle3(
    logits_processor, input_ids, hidden_states, lm_head, metadata, aux_hidden_states=None, before_norm=None
):
    pruned, _, _, _, _, _ = logits_processor._get_pruned_states(hidden_states, before_norm, aux_hidden_states, metadata)
    stored = logits_processor._get_hidden_states_to_store(hidden_states, before_norm, aux_hidden_states, metadata)
    return Captured(aux_hidden_states=stored, last_hidden_states=pruned)
