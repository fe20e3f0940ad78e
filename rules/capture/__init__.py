"""Which hidden states are captured: ids, the boundaries they mean, and the order in which they reach the draft."""
