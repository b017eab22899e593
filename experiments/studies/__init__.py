"""One module an experiment."""
