"""Measurements of the join and of extraction, of this project and of other tools; see ``benchmarks/README.md``."""
