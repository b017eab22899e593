"""Steps for the pipelines of other libraries."""
