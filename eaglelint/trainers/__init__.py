"""The training side of a wiring: which hidden states a user's own code captures, saves, and trains ``fc`` on."""

from eaglelint.trainers.scripts import TrainingResult, derive_training

__all__ = ["TrainingResult", "derive_training"]
