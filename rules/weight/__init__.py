"""Weights: tensors that are missing, tied, unclaimed, or not those they are taken for."""
