"""The forward pass of the target, patched to dump what the draft will be trained on."""

import torch

# Captured before these layers run: the residual stream after 3, 31 and 59 layers.
CAPTURE_BEFORE = (3, 31, 59)


def forward(self, input_ids, positions, forward_batch):
    hidden_states = self.embed_tokens(input_ids)
    residual = None
    states = []
    for i in range(self.start_layer, self.end_layer):
        if i in CAPTURE_BEFORE:
            states.append((hidden_states + residual).cpu())
        hidden_states, residual = self.layers[i](positions, hidden_states, forward_batch, residual)
    hidden_states, _ = self.norm(hidden_states, residual)
    states.append(hidden_states.cpu())
    torch.save({"input_ids": input_ids.cpu(), "hidden_states": states}, f"{forward_batch.dump_dir}/sample.pt")
    return hidden_states
