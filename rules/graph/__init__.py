"""When graphs are recorded, and what they hold."""
