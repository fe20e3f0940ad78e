"""Where the engine joins the captured states for the draft."""

import torch


class LogitsProcessor(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, input_ids, hidden_states, lm_head, logits_metadata, aux_hidden_states=None):
        return lm_head(hidden_states), self._get_hidden_states_to_store(
            hidden_states, None, aux_hidden_states, logits_metadata
        )

    def _get_hidden_states_to_store(self, hidden_states, hidden_states_before_norm, aux_hidden_states, logits_metadata):
        if not logits_metadata.capture_hidden_mode.need_capture():
            return None
        if aux_hidden_states is not None:
            return torch.cat(aux_hidden_states, dim=-1)
        return hidden_states
