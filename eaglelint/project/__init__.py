"""The project: its settings, the files in it that matter, and which draft meets which target."""
