"""Output formats, one file for each: what was found becomes text or JSON, and nothing is computed any more."""
