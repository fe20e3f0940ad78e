"""Norms: flags that add a norm, and the tensors that such a norm needs."""
