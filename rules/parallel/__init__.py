"""Pipeline stages and ranks: states that stay where they were captured."""
