"""Files: places here and elsewhere, files that appear whole or not at all, stores of arrays."""
