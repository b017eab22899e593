"""Modules whose coverage guides the fuzzer: readers and stores. Compiled kernels have no coverage."""

MODULES = ["spotsigs.formats", "spotsigs.storage.store"]
