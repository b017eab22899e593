"""HTML pages that show clusters and pairs."""
