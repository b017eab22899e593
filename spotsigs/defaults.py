"""Default values of the library and of its command, each in one place."""

TAU = 0.44
"""Similarity threshold: the paper's choice for its Gold Set (section 5.3)."""

IDF_MIN, IDF_MAX = 0.2, 1.0
"""Band of normalised IDF: frequent signatures are dropped, rare ones kept, because small clusters share only those."""
