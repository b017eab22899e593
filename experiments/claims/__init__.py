"""What the sources claim, and what became of it."""
