"""The same stages for what does not fit into memory: segments, layout, join, clusters on disk."""
