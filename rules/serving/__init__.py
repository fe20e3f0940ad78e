"""What an engine's classes and runners owe each other."""
