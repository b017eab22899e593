"""Measurements of the join, of extraction and of start-up beside peers; see ``benchmarks/README.md``."""
