"""One file per serving engine, saying only where its wiring begins; the rest is derived from its source."""
