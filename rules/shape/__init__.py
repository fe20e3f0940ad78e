"""Shapes: what the configs say of widths, heads and layers, and what the checkpoint holds."""
