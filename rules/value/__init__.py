"""What a captured tensor holds."""
