"""The dump probe: which of the target's states lie in the slots of a hidden-state dump, found by recomputing them."""
