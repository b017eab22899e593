"""Claims of the sources, and their verdicts."""
