"""The samples of the draft's training: all dumped states but the last are its input, the last is the label."""

import torch
from torch.utils.data import Dataset


class HiddenStateDataset(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        sample = torch.load(self.paths[index])
        states = sample["hidden_states"]
        return {
            "input_ids": sample["input_ids"],
            "hidden_states": torch.cat(states[:-1], dim=-1),
            "target": states[-1],
        }
