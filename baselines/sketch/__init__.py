"""Sketches of documents and their clustering in seven steps."""
