"""Training: how tokens and states are paired, and what dump and dataset make of what was captured."""
