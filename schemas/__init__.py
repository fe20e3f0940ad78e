"""The JSON Schemas of what eaglelint reads and writes, as package data."""
