"""Blocks for the pipelines of other libraries."""
