"""Tests run beside each other: each takes one thread, and tensors this small gain nothing from more."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
