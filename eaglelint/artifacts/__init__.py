"""Artifacts: configs, checkpoints and dumps as typed values, each of which knows its file, line and column."""
