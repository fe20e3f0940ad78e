"""What a draft's config says, and whether anyone reads it."""
