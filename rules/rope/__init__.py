"""Positions: rotary embeddings and how far they reach."""
