"""Files: local and remote paths, atomic writes, stores of arrays."""
