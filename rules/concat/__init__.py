"""How captured states are put side by side."""
