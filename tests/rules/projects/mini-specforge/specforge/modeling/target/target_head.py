import torch
from torch import nn


def shifted(tensor):
    return torch.cat((tensor[:, 1:], torch.zeros_like(tensor[:, -1:])), dim=1)


class TargetHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, hidden_states):
        return self.fc(hidden_states)

    def preprocess(self, input_ids, target, loss_mask):
        return shifted(input_ids), shifted(target), loss_mask[..., None]
