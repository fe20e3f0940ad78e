"""Element types and quantisation: what the weights are stored in, and what they are run in."""
